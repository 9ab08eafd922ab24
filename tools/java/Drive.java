import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.DelegationTokenNotFoundException;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Kafka's own clients of 3.9 and later: all that its admin, producers and consumers ask of brokers.
 *
 * java -cp 'JARS/*' Drive.java PLAIN SASL REPLICAS LOG_DIRECTORY
 *
 * It prints what was sent and read, and what the admin client says, a line each with tabs between
 * its parts, and ends with an error where a step does, unless that step is to be refused.
 */
public class Drive {
    static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};
    static final int RECORDS = 60;
    static final long LONG_AGO = 1_700_000_000_000L;
    static String plain;
    static String sasl;
    static short replicas;
    static String directory;

    interface Step {
        Object run() throws Exception;
    }

    public static void main(String[] given) throws Exception {
        plain = given[0];
        sasl = given[1];
        replicas = Short.parseShort(given[2]);
        directory = given[3];
        try (Admin admin = Admin.create(client("java-admin"))) {
            subscribe(admin);
            topics(admin);
            for (String codec : CODECS) {
                produce(codec);
            }
            withoutAnswer();
            transactions(admin);
            consume("classic", "drive-group");
            consume("classic", "drive-group");
            consume("consumer", "drive-newer");
            leaves(admin);
            groups(admin);
            partitions(admin);
            cluster(admin);
            principals(admin);
            gone(admin);
            // Each broker reads what was changed by itself.
            Thread.sleep(2000);
            says(admin);
        }
        tokens();
        System.exit(0);
    }

    static Map<String, Object> client(String id) {
        Map<String, Object> told = new HashMap<>();
        told.put("bootstrap.servers", plain);
        told.put("client.id", id);
        return told;
    }

    static void step(String name, Step step) throws Exception {
        try {
            step.run();
        } catch (Exception error) {
            throw new IllegalStateException(name + ": " + cause(error), error);
        }
        System.out.println("step\t" + name);
    }

    /** A step that the broker, or the client for it, has to refuse. */
    static void refused(String name, Step step) throws Exception {
        try {
            step.run();
        } catch (Exception error) {
            System.out.println("refused\t" + name + "\t" + cause(error).getClass().getSimpleName());
            return;
        }
        throw new IllegalStateException(name + " was not refused");
    }

    static Throwable cause(Throwable error) {
        return error.getCause() == null ? error : error.getCause();
    }

    static void say(Object... parts) {
        List<String> texts = new ArrayList<>();
        for (Object part : parts) {
            texts.add(String.valueOf(part));
        }
        System.out.println("says\t" + String.join("\t", texts));
    }

    static String text(byte[] value) {
        return value == null ? "null" : "=" + Base64.getEncoder().encodeToString(value);
    }

    static String line(ConsumerRecord<byte[], byte[]> one) {
        return line(one.topic(), one.partition(), one.offset(), one.timestamp(), one.key(), one.value());
    }

    static String line(String topic, int partition, long offset, long time, byte[] key, byte[] value) {
        return String.join("\t", topic, "" + partition, "" + offset, "" + time, text(key), text(value));
    }

    static void subscribe(Admin admin) throws Exception {
        // Brokers ask for what they are told to, and clients push it when they next may.
        ConfigResource all = new ConfigResource(ConfigResource.Type.CLIENT_METRICS, "all");
        step("subscribe to client metrics", () -> admin.incrementalAlterConfigs(Map.of(all, List.of(
            set("metrics", "org.apache.kafka."), set("interval.ms", "1000")))).all().get());
        step("listClientMetricsResources", () -> admin.listClientMetricsResources().all().get());
    }

    static AlterConfigOp set(String name, String value) {
        return new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET);
    }

    static void topics(Admin admin) throws Exception {
        List<NewTopic> made = new ArrayList<>();
        for (String codec : CODECS) {
            made.add(new NewTopic("drive-" + codec, 2, replicas));
        }
        made.add(new NewTopic("drive-paid", 1, replicas));
        made.add(new NewTopic("drive-moved", 1, (short) 1));
        made.add(new NewTopic("drive-gone", 1, replicas));
        made.add(new NewTopic("drive-shared", 2, replicas));
        made.add(new NewTopic("drive-kept", 1, replicas).configs(Map.of("cleanup.policy", "compact")));
        step("createTopics", () -> admin.createTopics(made).all().get());
        refused("createTopics twice", () -> admin.createTopics(made.subList(0, 1)).all().get());
        refused("createTopics with a bad name",
            () -> admin.createTopics(List.of(new NewTopic("no name", 1, replicas))).all().get());
        step("createPartitions",
            () -> admin.createPartitions(Map.of("drive-kept", NewPartitions.increaseTo(2))).all().get());
        step("listTopics", () -> admin.listTopics().names().get());
    }

    static KafkaProducer<byte[], byte[]> producer(Map<String, Object> told) {
        return new KafkaProducer<>(told, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static void produce(String codec) throws Exception {
        Map<String, Object> told = client("java-producer");
        told.put("compression.type", codec);
        try (KafkaProducer<byte[], byte[]> producer = producer(told)) {
            step("produce " + codec, () -> send(producer, "drive-" + codec));
        }
    }

    static Object send(KafkaProducer<byte[], byte[]> producer, String topic) throws Exception {
        for (int number = 0; number < RECORDS; number++) {
            byte[] key = number % 7 == 0 ? null : ("key " + number % 5).getBytes();
            byte[] value = number % 11 == 3 ? null : ("value " + number + " é ".repeat(number)).getBytes("UTF-8");
            ProducerRecord<byte[], byte[]> one =
                new ProducerRecord<>(topic, null, LONG_AGO + 1000L * number, key, value);
            if (number % 3 == 0) {
                one.headers().add("trace", ("id " + number).getBytes()).add("trace", null).add("", new byte[0]);
            }
            RecordMetadata at = producer.send(one).get();
            System.out.println("sent\t"
                + line(topic, at.partition(), at.offset(), one.timestamp(), key, value));
        }
        return null;
    }

    static void withoutAnswer() throws Exception {
        Map<String, Object> told = client("java-acks-0");
        told.put("acks", "0");
        told.put("enable.idempotence", "false");
        try (KafkaProducer<byte[], byte[]> producer = producer(told)) {
            step("produce with acks=0", () -> producer.send(
                new ProducerRecord<>("drive-kept", 0, "k".getBytes(), "unanswered".getBytes())).get());
        }
    }

    static void transactions(Admin admin) throws Exception {
        TopicPartition paid = new TopicPartition("drive-paid", 0);
        Map<String, Object> told = client("java-transactional");
        told.put("transactional.id", "drive-tx");
        KafkaProducer<byte[], byte[]> producer = producer(told);
        step("initTransactions", () -> { producer.initTransactions(); return null; });
        step("a transaction that commits", () -> {
            producer.beginTransaction();
            producer.send(new ProducerRecord<>("drive-paid", "committed".getBytes())).get();
            producer.sendOffsetsToTransaction(
                Map.of(new TopicPartition("drive-none", 0), new OffsetAndMetadata(3, "of a transaction")),
                new ConsumerGroupMetadata("drive-tx-group"));
            producer.commitTransaction();
            return null;
        });
        step("a transaction that aborts", () -> {
            producer.beginTransaction();
            producer.send(new ProducerRecord<>("drive-paid", "aborted".getBytes())).get();
            producer.abortTransaction();
            return null;
        });
        producer.beginTransaction();
        producer.send(new ProducerRecord<>("drive-paid", "open".getBytes())).get();
        step("listTransactions", () -> admin.listTransactions().all().get());
        for (var one : admin.describeTransactions(List.of("drive-tx")).all().get().entrySet()) {
            say("transaction", one.getKey(), one.getValue().state(), one.getValue().producerId(),
                one.getValue().producerEpoch(), one.getValue().topicPartitions());
        }
        ProducerState open = admin.describeProducers(List.of(paid)).all().get().get(paid).activeProducers().stream()
            .filter(one -> one.currentTransactionStartOffset().isPresent()).findFirst().orElseThrow();
        say("producer", open.producerId(), open.producerEpoch(), open.lastSequence(),
            open.currentTransactionStartOffset().getAsLong());
        step("abortTransaction", () -> admin.abortTransaction(new AbortTransactionSpec(paid, open.producerId(),
            (short) open.producerEpoch(), open.coordinatorEpoch().orElse(0))).all().get());
        step("fenceProducers", () -> admin.fenceProducers(List.of("drive-tx")).all().get());
        refused("a fenced producer's commit", () -> { producer.commitTransaction(); return null; });
        producer.close(Duration.ofSeconds(5));
    }

    static Map<String, Object> member(String id, String protocol, String group) {
        Map<String, Object> told = client(id);
        told.put("group.id", group);
        told.put("group.protocol", protocol);
        told.put("auto.offset.reset", "earliest");
        told.put("enable.auto.commit", "false");
        return told;
    }

    static KafkaConsumer<byte[], byte[]> consumer(Map<String, Object> told) {
        return new KafkaConsumer<>(told, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    /** Read what is there; the second time a group goes on where it was, which asks for epochs. */
    static void consume(String protocol, String group) throws Exception {
        List<String> wanted = new ArrayList<>();
        for (String codec : CODECS) {
            wanted.add("drive-" + codec);
        }
        Map<String, Object> told = member("java-" + protocol, protocol, group);
        if (protocol.equals("classic")) {
            told.put("heartbeat.interval.ms", "300");
        }
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(told)) {
            consumer.subscribe(wanted);
            Step reads = () -> read(consumer, protocol, group);
            if (protocol.equals("consumer") && Boolean.getBoolean("without.newer.groups")) {
                refused("consume by " + protocol, reads);
            } else {
                step("consume by " + protocol, reads);
            }
        }
    }

    static boolean read = false;

    static Object read(KafkaConsumer<byte[], byte[]> consumer, String protocol, String group) {
        int left = protocol.equals("classic") && read ? 0 : RECORDS * CODECS.length;
        long least = System.currentTimeMillis() + 3000;
        long end = least + 60_000;
        boolean pushed = false;
        while (left > 0 || System.currentTimeMillis() < least) {
            for (ConsumerRecord<byte[], byte[]> one : consumer.poll(Duration.ofMillis(300))) {
                System.out.println("read\t" + group + "\t" + line(one));
                left--;
            }
            if (!pushed && !consumer.assignment().isEmpty()) {
                say("client instance", consumer.clientInstanceId(Duration.ofSeconds(20)) != null);
                pushed = true;
            }
            if (System.currentTimeMillis() > end) {
                throw new IllegalStateException(left + " records were not read");
            }
        }
        consumer.commitSync();
        read |= protocol.equals("classic");
        return null;
    }

    static void leaves(Admin admin) throws Exception {
        Map<String, Object> told = member("java-static", "classic", "drive-static");
        told.put("group.instance.id", "static-1");
        KafkaConsumer<byte[], byte[]> consumer = consumer(told);
        consumer.subscribe(List.of("drive-none"));
        while (consumer.poll(Duration.ofMillis(300)).isEmpty()) {
            continue;
        }
        consumer.commitSync();
        step("removeMembersFromConsumerGroup", () -> admin.removeMembersFromConsumerGroup("drive-static",
            new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("static-1")))).all().get());
        consumer.close(Duration.ofSeconds(1));
        step("deleteConsumerGroups", () -> admin.deleteConsumerGroups(List.of("drive-static")).all().get());
    }

    static void groups(Admin admin) throws Exception {
        step("listConsumerGroups", () -> admin.listConsumerGroups().all().get());
        TopicPartition first = new TopicPartition("drive-none", 0);
        TopicPartition second = new TopicPartition("drive-none", 1);
        step("alterConsumerGroupOffsets", () -> admin.alterConsumerGroupOffsets("drive-group",
            Map.of(first, new OffsetAndMetadata(2, Optional.of(0), "moved"))).all().get());
        step("deleteConsumerGroupOffsets",
            () -> admin.deleteConsumerGroupOffsets("drive-group", Set.of(second)).all().get());
        refused("deleteConsumerGroups of none",
            () -> admin.deleteConsumerGroups(List.of("no such group")).all().get());
    }

    static void partitions(Admin admin) throws Exception {
        TopicPartition first = new TopicPartition("drive-gzip", 0);
        step("deleteRecords",
            () -> admin.deleteRecords(Map.of(first, RecordsToDelete.beforeOffset(5))).all().get());
        TopicPartitionReplica here = new TopicPartitionReplica("drive-lz4", 0, 1);
        step("describeReplicaLogDirs", () -> admin.describeReplicaLogDirs(List.of(here)).all().get());
        step("alterReplicaLogDirs", () -> admin.alterReplicaLogDirs(Map.of(here, directory)).all().get());
        refused("alterReplicaLogDirs to nowhere",
            () -> admin.alterReplicaLogDirs(Map.of(here, "/nowhere")).all().get());
        step("electLeaders", () -> admin.electLeaders(ElectionType.PREFERRED, null).partitions().get());
        TopicPartition moved = new TopicPartition("drive-moved", 0);
        List<Integer> to = replicas > 1 ? List.of(1, 2, 3) : List.of(1);
        step("alterPartitionReassignments", () -> admin.alterPartitionReassignments(
            Map.of(moved, Optional.of(new NewPartitionReassignment(to)))).all().get());
        step("listPartitionReassignments", () -> admin.listPartitionReassignments().reassignments().get());
    }

    static void cluster(Admin admin) throws Exception {
        refused("updateFeatures", () -> admin.updateFeatures(Map.of("metadata.version",
            new FeatureUpdate((short) 999, FeatureUpdate.UpgradeType.UPGRADE)),
            new UpdateFeaturesOptions().validateOnly(true)).all().get());
        refused("unregisterBroker", () -> admin.unregisterBroker(99).all().get());
        refused("addRaftVoter", () -> admin.addRaftVoter(77, Uuid.randomUuid(),
            Set.of(new RaftVoterEndpoint("CONTROLLER", "127.0.0.1", 1))).all().get());
        refused("removeRaftVoter", () -> admin.removeRaftVoter(78, Uuid.randomUuid()).all().get());
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, "drive-none");
        step("incrementalAlterConfigs", () -> admin.incrementalAlterConfigs(Map.of(topic, List.of(
            set("retention.ms", "-1"), set("max.message.bytes", "2000000")))).all().get());
        refused("incrementalAlterConfigs with a bad value", () -> admin.incrementalAlterConfigs(
            Map.of(topic, List.of(set("retention.ms", "long")))).all().get());
    }

    static void principals(Admin admin) throws Exception {
        AclBinding one = new AclBinding(
            new ResourcePattern(ResourceType.TOPIC, "drive-", PatternType.PREFIXED),
            new AccessControlEntry("User:carol", "*", AclOperation.READ, AclPermissionType.ALLOW));
        AclBinding other = new AclBinding(
            new ResourcePattern(ResourceType.GROUP, "drive-group", PatternType.LITERAL),
            new AccessControlEntry("User:dave", "*", AclOperation.READ, AclPermissionType.DENY));
        step("createAcls", () -> admin.createAcls(List.of(one, other)).all().get());
        step("deleteAcls", () -> admin.deleteAcls(List.of(other.toFilter())).all().get());
        step("alterClientQuotas", () -> admin.alterClientQuotas(List.of(new ClientQuotaAlteration(
            new ClientQuotaEntity(Map.of("client-id", "limited")),
            List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1e9))))).all().get());
        step("alterUserScramCredentials", () -> admin.alterUserScramCredentials(List.of(
            new UserScramCredentialUpsertion("carol",
                new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192), "only for a test"))).all().get());
    }

    /** What `flexwire call` is asked afterwards too. */
    static void says(Admin admin) throws Exception {
        List<String> names = new ArrayList<>();
        for (String codec : CODECS) {
            names.add("drive-" + codec);
        }
        DescribeClusterResult cluster =
            admin.describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(true));
        say("cluster", cluster.clusterId().get());
        for (Node node : cluster.nodes().get()) {
            say("node", node.id(), node.host(), node.port());
        }
        Map<TopicPartition, OffsetSpec> starts = new HashMap<>();
        Map<TopicPartition, OffsetSpec> ends = new HashMap<>();
        for (TopicDescription topic : admin.describeTopics(names).allTopicNames().get().values()) {
            for (TopicPartitionInfo part : topic.partitions()) {
                say("partition", topic.name(), topic.topicId(), part.partition(), part.leader().id(),
                    ids(part.replicas()));
                starts.put(new TopicPartition(topic.name(), part.partition()), OffsetSpec.earliest());
                ends.put(new TopicPartition(topic.name(), part.partition()), OffsetSpec.latest());
            }
            step("describeTopics by id", () -> admin.describeTopics(
                TopicCollection.ofTopicIds(List.of(topic.topicId()))).allTopicIds().get());
        }
        refused("describeTopics of none", () -> admin.describeTopics(List.of("nowhere")).allTopicNames().get());
        for (var one : admin.listOffsets(starts).all().get().entrySet()) {
            say("start", one.getKey().topic(), one.getKey().partition(), one.getValue().offset());
        }
        for (var one : admin.listOffsets(ends).all().get().entrySet()) {
            say("end", one.getKey().topic(), one.getKey().partition(), one.getValue().offset(),
                one.getValue().leaderEpoch().get());
        }
        for (OffsetSpec spec : List.of(OffsetSpec.maxTimestamp(), OffsetSpec.forTimestamp(LONG_AGO + 30_000),
                OffsetSpec.earliestLocal(), OffsetSpec.latestTiered())) {
            step("listOffsets " + spec.getClass().getSimpleName(),
                () -> admin.listOffsets(Map.of(new TopicPartition("drive-none", 0), spec)).all().get());
        }
        for (var one : admin.listConsumerGroupOffsets("drive-group").partitionsToOffsetAndMetadata().get().entrySet()) {
            if (one.getValue() != null) {
                say("commit", one.getKey().topic(), one.getKey().partition(), one.getValue().offset(),
                    one.getValue().metadata());
            }
        }
        ConsumerGroupDescription group = admin.describeConsumerGroups(List.of("drive-group"),
            new DescribeConsumerGroupsOptions().includeAuthorizedOperations(true)).all().get().get("drive-group");
        say("group", group.groupId(), group.state(), group.coordinator().id());
        configurations(admin);
    }

    static void configurations(Admin admin) throws Exception {
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, "drive-none");
        ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, "1");
        step("describeConfigs of a broker", () -> admin.describeConfigs(List.of(broker),
            new DescribeConfigsOptions().includeDocumentation(true).includeSynonyms(true)).all().get());
        for (ConfigEntry one : admin.describeConfigs(List.of(topic)).all().get().get(topic).entries()) {
            say("config", one.name(), one.value(), one.source());
        }
        for (AclBinding one : admin.describeAcls(AclBindingFilter.ANY).values().get()) {
            say("acl", one.pattern().name(), one.entry().principal(), one.entry().host());
        }
        for (var one : admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get().entrySet()) {
            say("quota", one.getKey().entries(), one.getValue());
        }
        for (UserScramCredentialsDescription one : admin.describeUserScramCredentials().all().get().values()) {
            for (ScramCredentialInfo info : one.credentialInfos()) {
                say("scram", one.name(), info.mechanism().type(), info.iterations());
            }
        }
        for (var one : admin.describeFeatures().featureMetadata().get().finalizedFeatures().entrySet()) {
            say("feature", one.getKey(), one.getValue().maxVersionLevel());
        }
        QuorumInfo quorum = admin.describeMetadataQuorum().quorumInfo().get();
        say("quorum", quorum.leaderId(), quorum.voters().stream().map(one -> one.replicaId()).sorted().toList());
        for (var one : admin.describeLogDirs(List.of(1)).allDescriptions().get().get(1).entrySet()) {
            say("log directory", one.getKey(), one.getValue().replicaInfos().keySet().stream()
                .filter(part -> part.topic().startsWith("drive-")).map(String::valueOf).sorted().toList());
        }
    }

    static List<Integer> ids(List<Node> nodes) {
        return nodes.stream().map(Node::id).toList();
    }

    static void gone(Admin admin) throws Exception {
        step("deleteTopics", () -> admin.deleteTopics(List.of("drive-gone")).all().get());
        refused("deleteTopics of none", () -> admin.deleteTopics(List.of("nowhere")).all().get());
    }

    static String login(String options) {
        return "org.apache.kafka.common.security.scram.ScramLoginModule required " + options + ";";
    }

    /** A token is known once each broker has read so much of the cluster's metadata. */
    static Object known(Admin admin, byte[] hmac) throws Exception {
        long end = System.currentTimeMillis() + 20_000;
        while (true) {
            try {
                return admin.renewDelegationToken(hmac).expiryTimestamp().get();
            } catch (ExecutionException error) {
                boolean waits = cause(error) instanceof DelegationTokenNotFoundException;
                if (!waits || System.currentTimeMillis() > end) {
                    throw error;
                }
                Thread.sleep(200);
            }
        }
    }

    /** The controller has made it, and the broker hears of it later: it knows whom it lists. */
    static Object listed(Admin admin) throws Exception {
        long end = System.currentTimeMillis() + 60_000;
        while (true) {
            List<?> found = admin.describeDelegationToken().delegationTokens().get();
            if (!found.isEmpty()) {
                return found;
            }
            if (System.currentTimeMillis() > end) {
                throw new IllegalStateException("the broker lists no token");
            }
            Thread.sleep(200);
        }
    }

    /** Delegation tokens can be had by those only who have logged in. */
    static void tokens() throws Exception {
        Map<String, Object> told = client("java-sasl");
        told.put("bootstrap.servers", sasl);
        told.put("security.protocol", "SASL_PLAINTEXT");
        told.put("sasl.mechanism", "SCRAM-SHA-256");
        told.put("sasl.jaas.config", login("username=\"carol\" password=\"only for a test\""));
        try (Admin admin = Admin.create(told)) {
            var token = admin.createDelegationToken().delegationToken().get();
            step("renewDelegationToken", () -> known(admin, token.hmac()));
            step("describeDelegationToken", () -> listed(admin));
            told.put("sasl.jaas.config", login("tokenauth=true username=\"" + token.tokenInfo().tokenId()
                + "\" password=\"" + token.hmacAsBase64String() + "\""));
            told.put("client.id", "java-token");
            try (KafkaProducer<byte[], byte[]> producer = producer(told)) {
                step("produce with a token",
                    () -> producer.send(new ProducerRecord<>("drive-kept", "k".getBytes(), null)).get());
            }
            step("expireDelegationToken", () -> admin.expireDelegationToken(token.hmac(),
                new ExpireDelegationTokenOptions().expiryTimePeriodMs(-1)).expiryTimestamp().get());
        }
    }
}
