// SPDX-License-Identifier: Apache-2.0

import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Paths;

/**
 * Waits in functions of known names, and measures that by the clock: WaitNames PIPE FILE SECONDS. Until FILE is there, each
 * function is called and nothing is measured, so that all of them are compiled. Prints "FUNCTION wait_ns" of each thread,
 * less its CPU time, "wall_ns" of all together, and "from_s", the time since the machine's boot at which that began.
 */
public class WaitNames {
    static final long NAP_MS = 50; // beside it what a sample takes is little

    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    /** The time that passes and is not the thread's own. */
    static long idleNs() {
        return System.nanoTime() - THREADS.getCurrentThreadCpuTime();
    }

    /** What a thread has waited, in sleeps, reads and for a lock. */
    static class Measured {
        long sleepNs, pipeNs, lockNs;
    }

    static void waitInSleep(Measured own) throws InterruptedException {
        long begin = idleNs();
        Thread.sleep(NAP_MS);
        own.sleepNs += idleNs() - begin;
    }

    static boolean waitInPipe(Measured own, FileInputStream pipe) throws IOException {
        long begin = idleNs();
        int read = pipe.read();
        own.pipeNs += idleNs() - begin;
        return read >= 0;
    }

    static void waitForLock(Measured own, Object lock) throws InterruptedException {
        long begin = idleNs();
        synchronized (lock) {
            own.lockNs += idleNs() - begin;
            waitInSleep(own);
        }
    }

    interface Body {
        void run() throws Exception;
    }

    static Thread start(Body body) {
        Thread thread = new Thread(() -> {
            try {
                body.run();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        });
        thread.start();
        return thread;
    }

    static void runPipe(long ms, String path, Measured reader, Measured writer) throws Exception {
        long end = System.nanoTime() + ms * 1_000_000;
        Thread thread = start(() -> {
            try (FileOutputStream pipe = new FileOutputStream(path)) {
                while (System.nanoTime() < end) {
                    waitInSleep(writer);
                    pipe.write('x');
                }
            }
        });
        try (FileInputStream pipe = new FileInputStream(path)) {
            while (waitInPipe(reader, pipe)) {
            }
        }
        thread.join();
    }

    static void takeTurns(long end, Object lock, Measured own) throws InterruptedException {
        while (System.nanoTime() < end) {
            waitForLock(own, lock);
            Thread.sleep(1); // the other has its turn
        }
    }

    static void runLock(long ms, Measured first, Measured second) throws Exception {
        long end = System.nanoTime() + ms * 1_000_000;
        Object lock = new Object();
        Thread thread = start(() -> takeTurns(end, lock, second));
        takeTurns(end, lock, first);
        thread.join();
    }

    static String bootSeconds() throws IOException {
        return new String(Files.readAllBytes(Paths.get("/proc/uptime"))).split(" ")[0];
    }

    static void print(Measured own) {
        System.out.println("WaitNames.waitInSleep " + own.sleepNs);
        System.out.println("WaitNames.waitInPipe " + own.pipeNs);
        System.out.println("WaitNames.waitForLock " + own.lockNs);
    }

    public static void main(String[] args) throws Exception {
        Measured first = new Measured(), second = new Measured();
        long partMs = Long.parseLong(args[2]) * 1000 / 2;
        while (!new File(args[1]).exists()) {
            runPipe(100, args[0], first, second);
            runLock(100, first, second);
            if (first.lockNs > 0)
                System.out.println("warm");
        }
        first = new Measured();
        second = new Measured();
        Thread.sleep(200); // the time since the boot is told to 10 ms
        System.out.println("from_s " + bootSeconds());
        Thread.sleep(200);
        long begin = System.nanoTime();
        runPipe(partMs, args[0], first, second);
        runLock(partMs, first, second);
        long wall = System.nanoTime() - begin;
        print(first);
        print(second);
        System.out.println("wall_ns " + wall);
        System.out.flush();
        Thread.sleep(60_000);
    }
}
