import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;

/**
 * Kafka Streams in a group of its own type: reads a topic until it has seen so many records.
 *
 * java -cp 'JARS/*' DriveStreams.java ADDRESS GROUP TOPIC COUNT STATE_DIRECTORY
 */
public class DriveStreams {
    static int seen = 0;

    public static void main(String[] given) throws Exception {
        Properties told = new Properties();
        told.put("bootstrap.servers", given[0]);
        told.put("application.id", given[1]);
        told.put("client.id", "java-streams");
        told.put("group.protocol", "streams");
        told.put("auto.offset.reset", "earliest");
        told.put("state.dir", given[4]);
        StreamsBuilder flow = new StreamsBuilder();
        flow.stream(given[2], Consumed.with(Serdes.ByteArray(), Serdes.ByteArray())).foreach((key, value) -> count());
        KafkaStreams streams = new KafkaStreams(flow.build(), told);
        streams.start();
        long end = System.currentTimeMillis() + 90_000;
        while (seen() < Integer.parseInt(given[3])) {
            if (System.currentTimeMillis() > end) {
                throw new IllegalStateException(seen() + " records flowed, and it is " + streams.state());
            }
            Thread.sleep(200);
        }
        streams.close(Duration.ofSeconds(20));
        System.out.println("flowed\t" + seen());
        System.exit(0);
    }

    static synchronized void count() {
        seen++;
    }

    static synchronized int seen() {
        return seen;
    }
}
