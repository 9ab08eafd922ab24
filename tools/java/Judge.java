import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.internals.BufferSupplier;

/**
 * What a release's own classes make of bytes: the content that they read, or the refusal.
 *
 * <p>{@code java -cp 'DIR/*' Judge.java JAR...} answers each line of standard input with a line. A
 * question is {@code {"message", "type", "version", "hex"}}, and an api key where there is one, or
 * {@code {"hex"}} alone for records. The answer has {@code json}, the bytes {@code read}, what its
 * converter makes of that JSON ({@code back}), what the class writes of it ({@code written}, and {@code known} once unknown tagged fields are gone) and
 * the {@code headerVersion}, or {@code refused} and the class of the exception. See
 * tools/vectors_package.py.
 */
public final class Judge {
    private static final JsonMapper JSON = new JsonMapper();
    private static final String CLASSES = ".*/(message|metadata|generated)/[A-Za-z0-9]+\\.class";
    private static final String UNKNOWN = "_unknownTaggedFields";

    private Judge() {}

    public static void main(String[] jars) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        Map<String, String> classes = classes(jars);
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode question = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode();
            try {
                if (question.has("message")) {
                    judge(question, classes, answer);
                } else {
                    records(question, answer);
                }
            } catch (InvocationTargetException error) {
                refuse(answer, error.getCause());
            } catch (Exception error) {
                refuse(answer, error);
            }
            out.println(JSON.writeValueAsString(answer));
        }
        out.flush();
    }

    private static void refuse(ObjectNode answer, Throwable error) {
        answer.removeAll();
        answer.put("refused", error.getClass().getSimpleName());
    }

    private static Map<String, String> classes(String[] jars) throws Exception {
        Map<String, String> classes = new HashMap<>();
        for (String path : jars) {
            try (JarFile jar = new JarFile(new File(path))) {
                for (JarEntry entry : Collections.list(jar.entries())) {
                    if (entry.getName().matches(CLASSES)) {
                        String dotted = entry.getName().replace('/', '.').replace(".class", "");
                        classes.put(dotted.substring(dotted.lastIndexOf('.') + 1), dotted);
                    }
                }
            }
        }
        return classes;
    }

    private static void judge(JsonNode question, Map<String, String> classes, ObjectNode answer)
        throws Exception {
        String name = question.get("message").asText();
        String type = question.get("type").asText();
        short version = (short) question.get("version").asInt();
        String made = classes.get(type.matches("request|response|header") ? name + "Data" : name);
        if (made == null) {
            throw new Error("no class for " + name);
        }
        Class<?> kind = Class.forName(made);
        ByteBuffer bytes = bytes(question);
        Message message = (Message) kind.getConstructor().newInstance();
        message.read(new ByteBufferAccessor(bytes), version);
        answer.put("read", bytes.position());
        JsonNode json = (JsonNode) Class.forName(made + "JsonConverter")
            .getMethod("write", kind, short.class).invoke(null, message, version);
        complete(json, message);
        answer.set("json", json);
        answer.put("back", back(made, json, version));
        answer.put("written", written(message, version));
        forget(json, message);
        answer.put("known", written(message, version));
        if (question.hasNonNull("apiKey")) {
            ApiKeys api = ApiKeys.forId(question.get("apiKey").asInt());
            answer.put("headerVersion", type.equals("request")
                ? api.requestHeaderVersion(version) : api.responseHeaderVersion(version));
        }
    }

    /** Gives the bytes that the converter's own JSON is written as, null where it refuses that. */
    private static String back(String made, JsonNode json, short version) throws Exception {
        try {
            return written(
                (Message) Class.forName(made + "JsonConverter")
                    .getMethod("read", JsonNode.class, short.class).invoke(null, JSON.readTree(JSON.writeValueAsString(json)), version),
                version
            );
        } catch (InvocationTargetException error) {
            return null;
        }
    }

    private static ByteBuffer bytes(JsonNode question) {
        return ByteBuffer.wrap(HexFormat.of().parseHex(question.get("hex").asText()));
    }

    /** Gives the bytes in hex, null where the class refuses to write what it read. */
    private static String written(Message message, short version) {
        try {
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer bytes = ByteBuffer.allocate(message.size(cache, version));
            message.write(new ByteBufferAccessor(bytes), cache, version);
            return HexFormat.of().formatHex(bytes.array());
        } catch (RuntimeException error) {
            return null;
        }
    }

    /** Puts in what the converter leaves out: the bytes of records, and unknown tagged fields. */
    private static void complete(JsonNode json, Message message) throws Exception {
        ObjectNode node = (ObjectNode) json;
        for (String name : names(json)) {
            Object value = message.getClass().getMethod(name).invoke(message);
            if (value instanceof MemoryRecords records) {
                ByteBuffer buffer = records.buffer().duplicate();
                byte[] data = new byte[buffer.remaining()];
                buffer.get(data);
                node.put(name, Base64.getEncoder().encodeToString(data));
            } else if (value instanceof Message struct) {
                complete(json.get(name), struct);
            } else if (value instanceof Collection<?> items) {
                int place = 0;
                for (Object item : items) {
                    if (item instanceof Message struct) {
                        complete(json.get(name).get(place++), struct);
                    }
                }
            }
        }
        List<RawTaggedField> unknown = message.unknownTaggedFields();
        if (unknown != null && !unknown.isEmpty()) {
            ArrayNode told = node.putArray(UNKNOWN);
            for (RawTaggedField field : unknown) {
                String data = Base64.getEncoder().encodeToString(field.data());
                told.addObject().put("tag", field.tag()).put("data", data);
            }
        }
    }

    /** Takes the unknown tagged fields out of a message and the structures in it. */
    private static void forget(JsonNode json, Message message) throws Exception {
        message.unknownTaggedFields().clear();
        for (String name : names(json)) {
            Object value = message.getClass().getMethod(name).invoke(message);
            if (value instanceof Message struct) {
                forget(json.get(name), struct);
            } else if (value instanceof Collection<?> items) {
                int place = 0;
                for (Object item : items) {
                    if (item instanceof Message struct) {
                        forget(json.get(name).get(place++), struct);
                    }
                }
            }
        }
    }

    private static List<String> names(JsonNode json) {
        List<String> names = new java.util.ArrayList<>();
        json.fieldNames().forEachRemaining(names::add);
        names.remove(UNKNOWN);
        return names;
    }

    private static void records(JsonNode question, ObjectNode answer) {
        MemoryRecords records = MemoryRecords.readableRecords(bytes(question));
        int read = 0;
        ArrayNode batches = JSON.createArrayNode();
        for (RecordBatch batch : records.batches()) {
            batch.ensureValid();
            read += batch.sizeInBytes();
            batches.add(batch(batch));
        }
        answer.put("read", read);
        answer.putObject("json").set("batches", batches);
    }

    private static ObjectNode batch(RecordBatch batch) {
        ObjectNode node = JSON.createObjectNode();
        boolean hasBase = batch.magic() >= RecordBatch.MAGIC_VALUE_V2;
        node.put("magic", batch.magic()).put("compression", batch.compressionType().name);
        node.put("timestampType", batch.timestampType().name);
        node.put("baseOffset", hasBase ? batch.baseOffset() : -1).put("lastOffset", batch.lastOffset());
        node.put("maxTimestamp", batch.maxTimestamp()).put("producerId", batch.producerId());
        node.put("producerEpoch", batch.producerEpoch()).put("baseSequence", batch.baseSequence());
        node.put("partitionLeaderEpoch", batch.partitionLeaderEpoch());
        node.put("isTransactional", batch.isTransactional());
        node.put("isControlBatch", batch.isControlBatch());
        node.put("checksum", batch.checksum()).put("sizeInBytes", batch.sizeInBytes());
        ArrayNode told = node.putArray("records");
        Iterator<Record> records = batch.streamingIterator(BufferSupplier.create());
        while (records.hasNext()) {
            Record record = records.next();
            record.ensureValid();
            ObjectNode one = told.addObject();
            one.put("offset", record.offset()).put("timestamp", record.timestamp());
            one.put("key", hex(record.key())).put("value", hex(record.value()));
            ArrayNode headers = one.putArray("headers");
            for (Header header : record.headers()) {
                String key = HexFormat.of().formatHex(header.key().getBytes(StandardCharsets.UTF_8));
                headers.addArray().add(key).add(hex(header.value()));
            }
        }
        return node;
    }

    private static String hex(ByteBuffer data) {
        if (data == null) {
            return null;
        }
        byte[] bytes = new byte[data.remaining()];
        data.duplicate().get(bytes);
        return HexFormat.of().formatHex(bytes);
    }

    private static String hex(byte[] data) {
        return data == null ? null : HexFormat.of().formatHex(data);
    }
}
