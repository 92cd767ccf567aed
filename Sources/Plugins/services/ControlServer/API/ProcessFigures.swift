// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// What the process uses of the machine (proc(5), getrusage(2)).
struct ProcessFigures: Sendable {
    var residentBytes = 0
    var processorSeconds = 0.0
    var openFiles = 0
    /// Since the process began; 0 where /proc does not say.
    var uptimeSeconds = 0.0

    /// [any thread] The present figures. What cannot be read stays 0.
    static func now() -> ProcessFigures {
        var figures = ProcessFigures()
        figures.residentBytes = residentPages * sysconf(Int32(_SC_PAGESIZE))
        var usage = rusage()
        if getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage) == 0 {
            for time in [usage.ru_utime, usage.ru_stime] {
                figures.processorSeconds += Double(time.tv_sec) + Double(time.tv_usec) / 1e6
            }
        }
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        if let startSeconds { figures.uptimeSeconds = Double(time.tv_sec) + Double(time.tv_nsec) / 1e9 - startSeconds }
        if let folder = opendir("/proc/self/fd") {
            // Without `.`, `..` and the folder itself.
            var count = -3
            while readdir(folder) != nil { count += 1 }
            closedir(folder)
            figures.openFiles = max(count, 0)
        }
        return figures
    }

    /// As `/api/v1/metrics` has them.
    var json: JSONNode {
        [
            "uptimeSeconds": .number(uptimeSeconds), "processorSeconds": .number(processorSeconds),
            "residentBytes": .number(residentBytes), "openFiles": .number(openFiles),
        ]
    }

    /// When the process began, on the clock that counts from the machine's start.
    private static let startSeconds: Double? = {
        // The 22nd member. The second one is the program's name in parentheses, which may contain parentheses itself.
        guard let text = text(of: "/proc/self/stat"), let end = text.lastIndex(of: ")") else { return nil }
        let members = text[end...].split(separator: " ")
        let ticks = sysconf(Int32(_SC_CLK_TCK))
        guard members.count > 20, let start = Double(members[20]), ticks > 0 else { return nil }
        return start / Double(ticks)
    }()

    /// The second number of statm.
    private static var residentPages: Int {
        let numbers = text(of: "/proc/self/statm")?.split(separator: " ") ?? []
        return numbers.count > 1 ? Int(numbers[1]) ?? 0 : 0
    }

    /// The first 2 KiB of a file; nil where it cannot be read.
    private static func text(of path: String) -> String? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 2048)
        let count = read(file, &bytes, bytes.count)
        return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
    }
}
