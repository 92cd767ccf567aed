// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The processors of the machine.
public enum Processors {
    /// How many are online.
    static let online = max(Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))), 1)

    /// [any thread] How many processors this process may use, as `taskset` or a container limits them:
    /// `Cpus_allowed` of /proc/self/status (proc(5)), a mask in hexadecimal with commas.
    public static var usable: Int {
        guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("Cpus_allowed:") }) else {
            return online
        }
        let mask = line.dropFirst("Cpus_allowed:".count)
        return min(max(mask.reduce(0) { $0 + ($1.hexDigitValue ?? 0).nonzeroBitCount }, 1), online)
    }

    private static var status: String {
        let file = open("/proc/self/status", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return "" }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 16_384)
        let count = read(file, &bytes, bytes.count)
        return String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self)
    }
}
