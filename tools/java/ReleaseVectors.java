import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.RawTaggedField;

/**
 * Every version of every message of a release, written by the release's own classes.
 *
 * <p>{@code java -cp 'DIR/*' ReleaseVectors.java COUNT JAR...} prints one JSON line a message. The
 * specs are those within the jars. A value comes from the message, the version, which of COUNT it
 * is, and the field's place among those of its structure. So releases with one layout give one
 * line, and a field that was only renamed keeps its value. See tools/release_vectors.py.
 */
public final class ReleaseVectors {
    private static final JsonMapper JSON =
        JsonMapper.builder().enable(JsonReadFeature.ALLOW_JAVA_COMMENTS).build();
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;
    private static final String SPECS = "(common/)?(message|metadata)/[A-Za-z0-9]+\\.json";
    // The packages that a release's build writes its messages into.
    private static final String CLASSES = ".*/(message|metadata|generated)/[A-Za-z0-9]+\\.class";
    // Around the sizes at which the varint of a compact string's length grows.
    private static final String[] TEXTS = {
        "", "a", "größe", "日本語", "\u0000", "𝄞", "x".repeat(126), "y".repeat(127), "z".repeat(128)
    };

    private ReleaseVectors() {}

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        int count = Integer.parseInt(arguments[0]);
        for (String path : List.of(arguments).subList(1, arguments.length)) {
            try (JarFile jar = new JarFile(path)) {
                TreeMap<String, String> classes = new TreeMap<>();
                List<JsonNode> specs = new ArrayList<>();
                for (JarEntry entry : Collections.list(jar.entries())) {
                    String name = entry.getName();
                    if (name.matches(CLASSES)) {
                        String dotted = name.replace('/', '.').replace(".class", "");
                        classes.put(dotted.substring(dotted.lastIndexOf('.') + 1), dotted);
                    } else if (name.matches(SPECS)) {
                        specs.add(read(jar, entry));
                    }
                }
                for (JsonNode spec : specs) {
                    print(out, count, new File(path).getName(), spec, classes);
                }
            }
        }
        out.flush();
    }

    private static JsonNode read(JarFile jar, JarEntry entry) throws IOException {
        try (InputStream stream = jar.getInputStream(entry)) {
            return JSON.readTree(stream);
        }
    }

    private static void print(
        PrintStream out, int count, String jar, JsonNode spec, TreeMap<String, String> classes
    ) throws Exception {
        String name = spec.get("name").asText();
        String type = spec.get("type").asText();
        boolean hasSuffix = type.matches("request|response|header");
        for (int version = 0; version < Short.MAX_VALUE; version++) {
            if (!has(spec, "validVersions", version)) {
                if (!anyFrom(spec.get("validVersions").asText(), version)) {
                    return;
                }
                continue;
            }
            String made = classes.get(hasSuffix ? name + "Data" : name);
            if (made == null) {
                throw new IllegalStateException(jar + " has no class for " + name);
            }
            for (int which = 0; which < count; which++) {
                ObjectNode line = new Vector(spec, made, version, which).write();
                line.put("jar", jar).put("message", name).put("type", type).put("version", version);
                out.println(JSON.writeValueAsString(line));
            }
        }
    }

    /** Whether a version is among those that a spec gives by a name; "none" where there is none. */
    private static boolean has(JsonNode node, String name, int version) {
        String[] ends = ends(node.path(name).asText("none"));
        return ends != null
            && version >= Integer.parseInt(ends[0])
            && (ends[1].isEmpty() || version <= Integer.parseInt(ends[1]));
    }

    private static boolean anyFrom(String versions, int version) {
        String[] ends = ends(versions);
        return ends != null && (ends[1].isEmpty() || version <= Integer.parseInt(ends[1]));
    }

    private static String[] ends(String versions) {
        if (versions.equals("none")) {
            return null;
        }
        if (versions.endsWith("+")) {
            return new String[] {versions.substring(0, versions.length() - 1), ""};
        }
        String[] parts = versions.split("-");
        return parts.length == 2 ? parts : new String[] {versions, versions};
    }

    private static String camel(JsonNode field) {
        String name = field.get("name").asText();
        return Character.toLowerCase(name.charAt(0)) + name.substring(1);
    }

    private static boolean isStruct(String type) {
        return Character.isUpperCase(type.charAt(0));
    }

    /** One message: the first of a version is full, the others leave out and add to it. */
    private static final class Vector {
        private final JsonNode spec;
        private final String outer;
        private final int version;
        private final boolean isFull;
        private final boolean isFlexible;
        private final String seed;
        private final ObjectNode unknown = NODES.objectNode();

        Vector(JsonNode spec, String outer, int version, int which) {
            this.spec = spec;
            this.outer = outer;
            this.version = version;
            this.isFull = which == 0;
            this.isFlexible = has(spec, "flexibleVersions", version);
            this.seed = spec.get("name").asText() + " " + version + " " + which;
        }

        /** Gives the message as its class writes it: bytes, JSON, and the tagged fields added. */
        ObjectNode write() throws Exception {
            Class<?> type = Class.forName(outer);
            ObjectNode values = struct(spec.get("fields"), "");
            Class<?> converter = converter(outer);
            Message message = (Message) (converter == null
                ? filled(type, values, spec.get("fields"))
                : converter.getMethod("read", JsonNode.class, short.class)
                    .invoke(null, values, (short) version));
            if (isFlexible && !isFull) {
                addTags(message, spec.get("fields"), "");
            }
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer bytes = ByteBuffer.allocate(message.size(cache, (short) version));
            message.write(new ByteBufferAccessor(bytes), cache, (short) version);
            if (bytes.hasRemaining()) {
                throw new IllegalStateException(seed + " is smaller than its size");
            }
            ObjectNode line = NODES.objectNode();
            line.put("hex", HexFormat.of().formatHex(bytes.array()));
            line.putNull("json");
            if (converter != null) {
                JsonNode json = (JsonNode) converter
                    .getMethod("write", type, short.class).invoke(null, message, (short) version);
                putRecords(json, values, spec.get("fields"));
                line.set("json", json);
            }
            line.set("unknown_tagged_fields", unknown);
            return line;
        }

        /** Gives the class that reads and writes JSON, null where a module has none. */
        private static Class<?> converter(String made) {
            try {
                return Class.forName(made + "JsonConverter");
            } catch (ClassNotFoundException none) {
                return null;
            }
        }

        /** Gives an object whose setters were called with the values. */
        private Object filled(Class<?> type, JsonNode values, JsonNode fields) throws Exception {
            Object target = type.getConstructor().newInstance();
            for (JsonNode field : fields) {
                JsonNode value = values.get(camel(field));
                for (Method method : type.getMethods()) {
                    if (value != null && method.getName().equals("set" + field.get("name").asText())) {
                        method.invoke(target, object(field.get("type").asText(), field, value));
                    }
                }
            }
            return target;
        }

        private Object object(String type, JsonNode field, JsonNode value) throws Exception {
            if (value.isNull()) {
                return null;
            }
            if (type.startsWith("[]")) {
                List<Object> items = new ArrayList<>();
                for (JsonNode item : value) {
                    items.add(object(type.substring(2), field, item));
                }
                return items;
            }
            return switch (type) {
                case "int8" -> (byte) value.intValue();
                case "int16" -> value.shortValue();
                case "int32" -> value.intValue();
                case "int64" -> value.longValue();
                case "string" -> value.textValue();
                case "uuid" -> Uuid.fromString(value.textValue());
                case "bytes" -> value.binaryValue();
                default -> filled(
                    Class.forName(outer + "$" + type), value, fieldsOf(type, field)
                );
            };
        }

        private Random random(String place) {
            long hash = 1125899906842597L;
            for (char one : (seed + place).toCharArray()) {
                hash = 31 * hash + one;
            }
            // Spread: the first numbers of neighbouring seeds are nearly the same.
            return new Random(hash * 0x9e3779b97f4a7c15L ^ hash >>> 29);
        }

        private ObjectNode struct(JsonNode fields, String place) {
            ObjectNode values = NODES.objectNode();
            int number = 0;
            for (JsonNode field : fields) {
                if (!has(field, "versions", version)) {
                    continue;
                }
                String here = place + "." + number++;
                Random random = random(here);
                boolean isAbsent = has(field, "taggedVersions", version) && random.nextInt(3) == 0;
                boolean isNull = has(field, "nullableVersions", version) && random.nextInt(3) == 0;
                if (isAbsent && !isFull) {
                    continue;
                }
                String type = field.get("type").asText();
                values.set(
                    camel(field),
                    isNull && !isFull ? NODES.nullNode() : value(type, field, here, random)
                );
            }
            return values;
        }

        private JsonNode value(String type, JsonNode field, String place, Random random) {
            if (type.startsWith("[]")) {
                int length = isFull ? 1 + random.nextInt(2) : random.nextInt(3);
                ArrayNode items = NODES.arrayNode();
                for (int item = 0; item < length; item++) {
                    items.add(value(type.substring(2), field, place + "[" + item, random));
                }
                return items;
            }
            return switch (type) {
                case "bool" -> NODES.booleanNode(random.nextBoolean());
                case "int8" -> NODES.numberNode((byte) number(random, 8));
                case "int16" -> NODES.numberNode((short) number(random, 16));
                case "uint16" -> NODES.numberNode((int) number(random, 16) & 0xffff);
                case "int32" -> NODES.numberNode((int) number(random, 32));
                case "uint32" -> NODES.numberNode(number(random, 32) & 0xffffffffL);
                case "int64" -> NODES.numberNode(number(random, 64));
                case "float64" -> NODES.numberNode(random.nextInt(2) == 0 ? -1.5 : random.nextDouble());
                case "string" -> NODES.textNode(text(random));
                case "uuid" ->
                    NODES.textNode(new Uuid(random.nextLong(), random.nextLong()).toString());
                case "bytes", "records" -> NODES.binaryNode(bytes(random));
                default -> struct(fieldsOf(type, field), place);
            };
        }

        /** Gives an integer that is an end of its range, a small one, or any. */
        private static long number(Random random, int bits) {
            long any = random.nextLong() >> (64 - bits);
            long highest = -1L >>> (65 - bits);
            return switch (random.nextInt(6)) {
                case 0 -> -1;
                case 1 -> highest;
                case 2 -> -highest - 1;
                case 3 -> any & 0x7f;
                default -> any;
            };
        }

        private static String text(Random random) {
            int which = random.nextInt(2 * TEXTS.length);
            return which < TEXTS.length ? TEXTS[which] : Integer.toString(random.nextInt(), 36);
        }

        private static byte[] bytes(Random random) {
            byte[] bytes = new byte[random.nextInt(8) == 0 ? 128 : random.nextInt(12)];
            random.nextBytes(bytes);
            return bytes;
        }

        private JsonNode fieldsOf(String type, JsonNode field) {
            if (field.path("fields").size() > 0) {
                return field.get("fields");
            }
            for (JsonNode struct : spec.path("commonStructs")) {
                if (struct.get("name").asText().equals(type)) {
                    return struct.get("fields");
                }
            }
            throw new IllegalStateException(seed + " has no structure " + type);
        }

        /** Adds tagged fields that no spec has, to the message and half of the structures in it. */
        private void addTags(Message message, JsonNode fields, String path) throws Exception {
            Random random = random("tags of " + path.replaceAll("[A-Za-z]", ""));
            if (path.isEmpty() || random.nextBoolean()) {
                ArrayNode told = unknown.putArray(path);
                for (int tag : new int[] {100 + random.nextInt(27), 128 + random.nextInt(20_000)}) {
                    byte[] data = bytes(random);
                    message.unknownTaggedFields().add(new RawTaggedField(tag, data));
                    told.addObject().put("tag", tag).put("hex", HexFormat.of().formatHex(data));
                }
            }
            for (JsonNode field : fields) {
                String type = field.get("type").asText();
                String inner = type.startsWith("[]") ? type.substring(2) : type;
                if (!has(field, "versions", version) || !isStruct(inner)) {
                    continue;
                }
                Method getter = message.getClass().getMethod(camel(field));
                Object value = getter.invoke(message);
                String here = path + "." + camel(field);
                if (value instanceof Message struct && isWritten(struct, field)) {
                    addTags(struct, fieldsOf(inner, field), here);
                } else if (value instanceof Collection<?> items) {
                    int item = 0;
                    for (Object one : items) {
                        addTags((Message) one, fieldsOf(inner, field), here + "[" + item++ + "]");
                    }
                }
            }
        }

        /** Whether a structure is on the wire; a tagged one is not when it is at its default. */
        private boolean isWritten(Message struct, JsonNode field) throws Exception {
            return !has(field, "taggedVersions", version)
                || !struct.equals(struct.getClass().getConstructor().newInstance());
        }

        /** Puts the bytes of records where the converter writes none. */
        private void putRecords(JsonNode json, JsonNode values, JsonNode fields) {
            for (JsonNode field : fields) {
                String type = field.get("type").asText();
                JsonNode from = values.path(camel(field));
                JsonNode to = json.path(camel(field));
                if (type.equals("records") && from.isBinary()) {
                    String text = Base64.getEncoder().encodeToString(binary(from));
                    ((ObjectNode) json).put(camel(field), text);
                } else if (isStruct(type) && to.isObject() && from.isObject()) {
                    putRecords(to, from, fieldsOf(type, field));
                } else if (type.startsWith("[]") && isStruct(type.substring(2))) {
                    for (int item = 0; item < to.size(); item++) {
                        putRecords(to.get(item), from.get(item), fieldsOf(type.substring(2), field));
                    }
                }
            }
        }

        private static byte[] binary(JsonNode node) {
            try {
                return node.binaryValue();
            } catch (IOException error) {
                throw new IllegalStateException(error);
            }
        }
    }
}
