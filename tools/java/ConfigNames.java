import java.lang.reflect.Field;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;

/** Prints the configurations that the brokers on the class path know: of what, and the name. */
public final class ConfigNames {
    private static final String[][] DEFINED = {
        {"topic", "org.apache.kafka.storage.internals.log.LogConfig", "CONFIG"},
        {"broker", "org.apache.kafka.server.config.AbstractKafkaConfig", "CONFIG_DEF"},
    };

    public static void main(String[] arguments) throws Exception {
        for (String[] one : DEFINED) {
            Map<String, ConfigDef.ConfigKey> sorted = new TreeMap<>(defined(one[1], one[2]));
            for (ConfigDef.ConfigKey key : sorted.values()) {
                System.out.println(one[0] + " " + key.name);
            }
        }
    }

    private static Map<String, ConfigDef.ConfigKey> defined(String type, String field)
            throws Exception {
        Field found = Class.forName(type).getDeclaredField(field);
        found.setAccessible(true);
        return ((ConfigDef) found.get(null)).configKeys();
    }
}
