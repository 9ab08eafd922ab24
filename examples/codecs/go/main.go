// A codec for `flexwire vectors check`, made of franz-go's kmsg: it reads a message and writes it
// again. kmsg has no JSON form, so it is not asked to encode (--decode-only).
package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kmsg"
)

type question struct {
	Case    string `json:"case"`
	Do      string `json:"do"`
	Type    string `json:"type"`
	APIKey  *int16 `json:"apiKey"`
	Version int16  `json:"version"`
	Hex     string `json:"hex"`
}

// What requests and responses of kmsg have in common.
type body interface {
	SetVersion(int16)
	MaxVersion() int16
	ReadFrom([]byte) error
	AppendTo([]byte) []byte
}

func answer(asked question) (reply map[string]string) {
	defer func() {
		// A panic is no refusal. The runner should see that the codec crashed.
		reply["case"] = asked.Case
	}()
	if asked.Do != "decode" || asked.APIKey == nil {
		return map[string]string{"unsupported": "only requests and responses are read"}
	}
	var message body
	switch asked.Type {
	case "request":
		if found := kmsg.RequestForKey(*asked.APIKey); found != nil {
			message = found
		}
	case "response":
		if found := kmsg.ResponseForKey(*asked.APIKey); found != nil {
			message = found
		}
	}
	if message == nil {
		return map[string]string{"unsupported": "kmsg has no such message"}
	}
	if asked.Version > message.MaxVersion() {
		return map[string]string{"unsupported": fmt.Sprintf("kmsg ends at version %d", message.MaxVersion())}
	}
	data, err := hex.DecodeString(asked.Hex)
	if err != nil {
		return map[string]string{"refused": err.Error()}
	}
	message.SetVersion(asked.Version)
	if err := message.ReadFrom(data); err != nil {
		return map[string]string{"refused": err.Error()}
	}
	return map[string]string{"hex": hex.EncodeToString(message.AppendTo(nil))}
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		if err := out.Encode(answer(asked)); err != nil {
			panic(err)
		}
	}
}
