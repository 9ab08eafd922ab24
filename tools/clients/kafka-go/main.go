// kafka-go on trial: creates a topic, produces, consumes in a group and commits, and says after each step how it went.
//
// kafka-go ADDRESS CLIENT_ID TOPIC GROUP COUNT SECONDS
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
)

var seconds int

type said struct {
	Step  string  `json:"step"`
	Error *string `json:"error"`
}

func step(name string, body func(context.Context) error) bool {
	within, cancel := context.WithTimeout(context.Background(), time.Duration(seconds)*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- body(within) }()
	var err error
	select {
	case err = <-done:
	case <-time.After(time.Duration(seconds+1) * time.Second):
		err = fmt.Errorf("nothing in %d s", seconds)
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

func main() {
	address, topic := os.Args[1], os.Args[3]
	count, _ := strconv.Atoi(os.Args[5])
	seconds, _ = strconv.Atoi(os.Args[6])
	dialer := &kafka.Dialer{ClientID: os.Args[2], Timeout: 10 * time.Second}
	step("create", func(within context.Context) error {
		conn, err := dialer.DialContext(within, "tcp", address)
		if err != nil {
			return err
		}
		defer conn.Close()
		return conn.CreateTopics(kafka.TopicConfig{Topic: topic + "-own", NumPartitions: 1, ReplicationFactor: 1})
	})
	step("produce", func(within context.Context) error {
		writer := kafka.NewWriter(kafka.WriterConfig{Brokers: []string{address}, Topic: topic, Dialer: dialer, BatchTimeout: time.Millisecond})
		for number := 0; number < count; number++ {
			if err := writer.WriteMessages(within, kafka.Message{Value: []byte(fmt.Sprintf("own-%d", number))}); err != nil {
				return err
			}
		}
		return nil
	})
	var last string
	heard := kafka.LoggerFunc(func(text string, args ...interface{}) { last = fmt.Sprintf(text, args...) })
	reader := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{address}, Topic: topic, GroupID: os.Args[4],
		Dialer: dialer, StartOffset: kafka.FirstOffset, MaxBytes: 1_000_000, ErrorLogger: heard})
	var read []kafka.Message
	if step("consume", func(within context.Context) error {
		for left := count; left > 0; {
			one, err := reader.FetchMessage(within)
			if err != nil {
				return fmt.Errorf("%w; %s", err, last)
			}
			read = append(read, one)
			if strings.HasPrefix(string(one.Value), "seed-") {
				left--
			}
		}
		return nil
	}) {
		step("commit", func(within context.Context) error { return reader.CommitMessages(within, read...) })
	}
}
