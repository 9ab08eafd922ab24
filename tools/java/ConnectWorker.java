import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.connect.cli.ConnectDistributed;
import org.apache.kafka.connect.runtime.Connect;

/**
 * A worker of Kafka Connect without connectors, until standard input ends.
 *
 * java -cp 'JARS/*' ConnectWorker.java ADDRESS GROUP
 */
public class ConnectWorker {
    public static void main(String[] given) throws Exception {
        Map<String, String> told = new HashMap<>();
        told.put("bootstrap.servers", given[0]);
        told.put("group.id", given[1]);
        told.put("client.id", given[1]);
        told.put("listeners", "http://127.0.0.1:0");
        for (String converter : new String[] {"key.converter", "value.converter"}) {
            told.put(converter, "org.apache.kafka.connect.converters.ByteArrayConverter");
        }
        for (String topic : new String[] {"offset", "config", "status"}) {
            told.put(topic + ".storage.topic", given[1] + "-" + topic);
            told.put(topic + ".storage.replication.factor", "1");
        }
        told.put("offset.storage.partitions", "1");
        told.put("status.storage.partitions", "1");
        Connect<?> worker = new ConnectDistributed().startConnect(told);
        while (System.in.read() >= 0) {
            continue;
        }
        worker.stop();
        System.exit(0);
    }
}
