import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;

/**
 * Kafka Streams with the classic protocol: reads a topic until standard input ends.
 *
 * java -cp 'JARS/*' ClassicStreams.java ADDRESS GROUP TOPIC STATE_DIRECTORY
 */
public class ClassicStreams {
    public static void main(String[] given) throws Exception {
        Properties told = new Properties();
        told.put("bootstrap.servers", given[0]);
        told.put("application.id", given[1]);
        told.put("client.id", given[1]);
        told.put("num.stream.threads", "2");
        told.put("state.dir", given[3]);
        StreamsBuilder flow = new StreamsBuilder();
        flow.stream(given[2], Consumed.with(Serdes.ByteArray(), Serdes.ByteArray())).foreach((key, value) -> { });
        KafkaStreams streams = new KafkaStreams(flow.build(), told);
        streams.start();
        while (System.in.read() >= 0) {
            continue;
        }
        streams.close(Duration.ofSeconds(5));
        System.exit(0);
    }
}
