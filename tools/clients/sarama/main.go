// Sarama on trial: creates a topic, produces, consumes in a group and commits, and says after each step how it went.
//
// sarama ADDRESS CLIENT_ID TOPIC GROUP COUNT SECONDS [VERSION]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

var seconds int

type said struct {
	Step  string  `json:"step"`
	Error *string `json:"error"`
}

func step(name string, body func() error) bool {
	done := make(chan error, 1)
	go func() { done <- body() }()
	err := errors.New(fmt.Sprintf("nothing in %d s", seconds))
	select {
	case err = <-done:
	case <-time.After(time.Duration(seconds) * time.Second):
	}
	told := said{Step: name}
	if err != nil {
		text := err.Error()
		told.Error = &text
	}
	line, _ := json.Marshal(told)
	fmt.Println(string(line))
	return err == nil
}

// A member of the group, which commits what it has read when it has read enough.
type member struct {
	count    int
	read     chan struct{}
	commit   chan struct{}
	committed chan struct{}
}

func (m *member) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (m *member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	left := m.count
	for one := range claim.Messages() {
		session.MarkMessage(one, "")
		if strings.HasPrefix(string(one.Value), "seed-") {
			left--
		}
		if left == 0 {
			close(m.read)
			<-m.commit
			session.Commit()
			close(m.committed)
			return nil
		}
	}
	return nil
}

func main() {
	address, topic, group := []string{os.Args[1]}, os.Args[3], os.Args[4]
	count, _ := strconv.Atoi(os.Args[5])
	seconds, _ = strconv.Atoi(os.Args[6])
	config := sarama.NewConfig()
	config.ClientID = os.Args[2]
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Return.Errors = true
	if len(os.Args) > 7 {
		version, err := sarama.ParseKafkaVersion(os.Args[7])
		if err != nil {
			panic(err)
		}
		config.Version = version
	}
	step("create", func() error {
		admin, err := sarama.NewClusterAdmin(address, config)
		if err != nil {
			return err
		}
		return admin.CreateTopic(topic+"-own", &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, false)
	})
	step("produce", func() error {
		producer, err := sarama.NewSyncProducer(address, config)
		if err != nil {
			return err
		}
		for number := 0; number < count; number++ {
			value := sarama.StringEncoder(fmt.Sprintf("own-%d", number))
			if _, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: value}); err != nil {
				return err
			}
		}
		return nil
	})
	own := &member{count, make(chan struct{}), make(chan struct{}), make(chan struct{})}
	failed := make(chan error, 100)
	if step("consume", func() error {
		consumer, err := sarama.NewConsumerGroup(address, group, config)
		if err != nil {
			return err
		}
		go func() {
			for err := range consumer.Errors() {
				failed <- err
			}
		}()
		go func() { failed <- consumer.Consume(context.Background(), []string{topic}, own) }()
		select {
		case <-own.read:
			return nil
		case err := <-failed:
			return err
		}
	}) {
		close(own.commit)
		step("commit", func() error {
			<-own.committed
			select {
			case err := <-failed:
				return err
			case <-time.After(time.Second):
				return nil
			}
		})
	}
}
