// Members of groups by franz-go, as many as are asked for: see tools/clients/members.py. A setting is the name of an
// option of kgo with its value.
//
// franz members
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var saying sync.Mutex

func say(member, event, text string) {
	saying.Lock()
	defer saying.Unlock()
	line, _ := json.Marshal(map[string]string{"member": member, "event": event, "text": text})
	fmt.Println(string(line))
}

// own is a balancer of nobody else: it assigns as another does, and then changes the bytes of each assignment.
type own struct {
	kgo.GroupBalancer
	name   string
	change func([]byte) []byte
}

func (o own) ProtocolName() string { return o.name }

func (o own) MemberBalancer(members []kmsg.JoinGroupResponseMember) (kgo.GroupMemberBalancer, map[string]struct{}, error) {
	inner, topics, err := o.GroupBalancer.MemberBalancer(members)
	return changed{inner, o.change}, topics, err
}

func (o own) ParseSyncAssignment(assignment []byte) (map[string][]int32, error) {
	found, err := o.GroupBalancer.ParseSyncAssignment(assignment)
	if err != nil {
		return map[string][]int32{}, nil
	}
	return found, nil
}

type changed struct {
	inner  kgo.GroupMemberBalancer
	change func([]byte) []byte
}

func (c changed) Balance(topics map[string]int32) kgo.IntoSyncAssignment {
	// Those of kgo itself have this one, and panic in the other.
	plan, err := c.inner.(kgo.GroupMemberBalancerOrError).BalanceOrError(topics)
	if err != nil {
		panic(err)
	}
	return changedPlan{plan, c.change}
}

type changedPlan struct {
	plan   kgo.IntoSyncAssignment
	change func([]byte) []byte
}

func (c changedPlan) IntoSyncAssignment() []kmsg.SyncGroupRequestGroupAssignment {
	given := c.plan.IntoSyncAssignment()
	for number := range given {
		given[number].MemberAssignment = c.change(given[number].MemberAssignment)
	}
	return given
}

func marked(assignment []byte) []byte {
	var read kmsg.ConsumerMemberAssignment
	if read.ReadFrom(assignment) != nil {
		return assignment
	}
	read.UserData = []byte("own")
	return read.AppendTo(nil)
}

func unreadable([]byte) []byte { return []byte{0, 1, 127} }

var balancers = map[string]kgo.GroupBalancer{
	"range":              kgo.RangeBalancer(),
	"roundrobin":         kgo.RoundRobinBalancer(),
	"sticky":             kgo.StickyBalancer(),
	"cooperative-sticky": kgo.CooperativeStickyBalancer(),
	"marked":             own{kgo.RangeBalancer(), "marked", marked},
	"unreadable":         own{kgo.RangeBalancer(), "unreadable", unreadable},
}

func option(name, value string) kgo.Opt {
	switch name {
	case "ClientID":
		return kgo.ClientID(value)
	case "ServerSideBalancer":
		return kgo.ServerSideBalancer()
	case "Balancers":
		var chosen []kgo.GroupBalancer
		for _, one := range strings.Split(value, ",") {
			chosen = append(chosen, balancers[one])
		}
		return kgo.Balancers(chosen...)
	case "GroupProtocol":
		return kgo.GroupProtocol(value)
	case "SessionTimeout":
		milliseconds, _ := strconv.Atoi(value)
		return kgo.SessionTimeout(time.Duration(milliseconds) * time.Millisecond)
	case "InstanceID":
		return kgo.InstanceID(value)
	}
	panic("no option " + name)
}

func consume(within context.Context, words []string) {
	name, topic := words[1], words[4]
	defer say(name, "left", "")
	options := []kgo.Opt{kgo.SeedBrokers(words[2]), kgo.ConsumerGroup(words[3]), kgo.ConsumeTopics(topic),
		kgo.FetchMaxWait(5 * time.Second)} // Members that read nothing ask a broker seldom.
	if strings.HasPrefix(topic, "^") {
		options = append(options, kgo.ConsumeRegex())
	}
	for _, setting := range words[5:] {
		key, value, _ := strings.Cut(setting, "=")
		options = append(options, option(key, value))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		say(name, "failed", err.Error())
		return
	}
	say(name, "started", "")
	for within.Err() == nil {
		for _, one := range client.PollFetches(within).Errors() {
			if within.Err() == nil {
				say(name, "failed", one.Err.Error())
			}
		}
	}
	client.Close()
}

func members() {
	leaving := map[string]context.CancelFunc{}
	asked := bufio.NewScanner(os.Stdin)
	for asked.Scan() {
		words := strings.Split(asked.Text(), "\t")
		if words[0] == "start" {
			within, leave := context.WithCancel(context.Background())
			leaving[words[1]] = leave
			go consume(within, words)
		} else {
			leaving[words[1]]()
		}
	}
}
