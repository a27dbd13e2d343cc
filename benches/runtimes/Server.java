import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/** Adds numbers up. "add KEY NUMBER" is answered with the sum of the key, "count" with the number of sums that were sent. */
public class Server {
    private static final ConcurrentHashMap<String, Long> sums = new ConcurrentHashMap<>();
    private static final AtomicLong exchanges = new AtomicLong();

    public static void main(String[] arguments) throws IOException {
        try (var listener = new ServerSocket(7000, 50, InetAddress.getLoopbackAddress())) {
            while (true) {
                Socket socket = listener.accept();
                new Thread(() -> serve(socket)).start();
            }
        }
    }

    private static void serve(Socket socket) {
        try (socket) {
            socket.setTcpNoDelay(true);
            var lines = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.ISO_8859_1));
            String line;
            while ((line = lines.readLine()) != null) {
                socket.getOutputStream().write((answer(line) + "\n").getBytes(StandardCharsets.ISO_8859_1));
            }
        } catch (IOException error) {
            System.err.println(error.getMessage());
        }
    }

    private static long answer(String line) {
        String[] words = line.split(" ");
        if (words[0].equals("count")) {
            return exchanges.get();
        }
        exchanges.incrementAndGet();
        return sums.merge(words[1], Long.parseLong(words[2]), Long::sum);
    }
}
