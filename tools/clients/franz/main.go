// franz-go on trial: creates a topic, produces, consumes in a group and commits, and says after each step how it went.
//
// franz ADDRESS CLIENT_ID TOPIC GROUP COUNT SECONDS [VERSION]
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

var seconds int

type said struct {
	Step  string  `json:"step"`
	Error *string `json:"error"`
}

func step(name string, body func(context.Context) error) bool {
	within, cancel := context.WithTimeout(context.Background(), time.Duration(seconds)*time.Second)
	defer cancel()
	err := body(within)
	told := said{Step: name}
	if err != nil {
		text := err.Error()
		told.Error = &text
	}
	line, _ := json.Marshal(told)
	fmt.Println(string(line))
	return err == nil
}

func client(more ...kgo.Opt) *kgo.Client {
	options := append(more, kgo.SeedBrokers(os.Args[1]), kgo.ClientID(os.Args[2]))
	if len(os.Args) > 7 {
		options = append(options, kgo.MaxVersions(kversion.FromString(os.Args[7])))
	}
	made, err := kgo.NewClient(options...)
	if err != nil {
		panic(err)
	}
	return made
}

func main() {
	if os.Args[1] == "members" {
		members()
		return
	}
	topic, group := os.Args[3], os.Args[4]
	count, _ := strconv.Atoi(os.Args[5])
	seconds, _ = strconv.Atoi(os.Args[6])
	step("create", func(within context.Context) error {
		request := kmsg.NewCreateTopicsRequest()
		wanted := kmsg.NewCreateTopicsRequestTopic()
		wanted.Topic, wanted.NumPartitions, wanted.ReplicationFactor = topic+"-own", 1, 1
		request.Topics = append(request.Topics, wanted)
		answer, err := request.RequestWith(within, client())
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(answer.Topics[0].ErrorCode)
	})
	step("produce", func(within context.Context) error {
		var values []*kgo.Record
		for number := 0; number < count; number++ {
			values = append(values, &kgo.Record{Topic: topic, Value: []byte(fmt.Sprintf("own-%d", number))})
		}
		return client().ProduceSync(within, values...).FirstErr()
	})
	consumer := client(kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if step("consume", func(within context.Context) error {
		for left := count; left > 0; {
			fetches := consumer.PollFetches(within)
			for _, one := range fetches.Errors() {
				return one.Err
			}
			fetches.EachRecord(func(one *kgo.Record) {
				if strings.HasPrefix(string(one.Value), "seed-") {
					left--
				}
			})
		}
		return nil
	}) {
		step("commit", consumer.CommitUncommittedOffsets)
	}
}
