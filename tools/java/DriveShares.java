import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Kafka's own share consumer, of 4.0 and later, and what its admin says of groups since then.
 *
 * java -cp 'JARS/*' DriveShares.java ADDRESS
 */
public class DriveShares {
    static final int RECORDS = 40;

    public static void main(String[] given) throws Exception {
        Map<String, Object> told = new HashMap<>(Map.of("bootstrap.servers", given[0], "client.id", "java-share"));
        try (Admin admin = Admin.create(told)) {
            ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, "drive-share");
            admin.incrementalAlterConfigs(Map.of(group, List.of(new AlterConfigOp(
                new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET)))).all().get();
            StringSerializer text = new StringSerializer();
            try (KafkaProducer<String, String> producer = new KafkaProducer<>(told, text, text)) {
                for (int number = 0; number < RECORDS; number++) {
                    producer.send(new ProducerRecord<>("drive-shared", "shared " + number)).get();
                }
            }
            share(told, admin);
            for (GroupListing one : admin.listGroups().all().get()) {
                System.out.println("says\tgroup of all\t" + one.groupId() + "\t"
                    + one.type().map(String::valueOf).orElse("?"));
            }
            admin.describeClassicGroups(List.of("drive-group")).all().get();
        }
        System.exit(0);
    }

    static void share(Map<String, Object> told, Admin admin) throws Exception {
        Map<String, Object> own = new HashMap<>(told);
        own.put("group.id", "drive-share");
        own.put("share.acknowledgement.mode", "explicit");
        StringDeserializer text = new StringDeserializer();
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(own, text, text)) {
            consumer.subscribe(List.of("drive-shared"));
            long end = System.currentTimeMillis() + 90_000;
            for (int left = RECORDS; left > 0; ) {
                for (ConsumerRecord<String, String> one : consumer.poll(Duration.ofMillis(500))) {
                    boolean again = one.offset() % 10 == 3 && one.deliveryCount().orElse((short) 1) == 1;
                    consumer.acknowledge(one, again ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT);
                    left -= again ? 0 : 1;
                    System.out.println("shared\t" + one.value() + "\t" + one.deliveryCount().orElse((short) 0));
                }
                consumer.commitSync();
                if (System.currentTimeMillis() > end) {
                    throw new IllegalStateException(left + " records were not shared");
                }
            }
            for (ShareGroupDescription one : admin.describeShareGroups(List.of("drive-share")).all().get().values()) {
                System.out.println("says\tshare group\t" + one.groupId() + "\t" + one.members().size());
            }
        }
    }
}
