import Glibc

/// What the process takes of the machine (proc(5), getrusage(2)).
struct ProcessFigures: Sendable {
    var residentBytes = 0
    var processorSeconds = 0.0
    var openFiles = 0

    /// [any thread] As it is now; what cannot be read stays 0.
    static func now() -> ProcessFigures {
        var figures = ProcessFigures()
        figures.residentBytes = residentPages * sysconf(Int32(_SC_PAGESIZE))
        var usage = rusage()
        if getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage) == 0 {
            for time in [usage.ru_utime, usage.ru_stime] {
                figures.processorSeconds += Double(time.tv_sec) + Double(time.tv_usec) / 1e6
            }
        }
        if let folder = opendir("/proc/self/fd") {
            // Without `.`, `..` and the folder itself.
            var count = -3
            while readdir(folder) != nil { count += 1 }
            closedir(folder)
            figures.openFiles = max(count, 0)
        }
        return figures
    }

    /// The second number of statm.
    private static var residentPages: Int {
        let file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return 0 }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = read(file, &bytes, bytes.count)
        guard count > 0 else { return 0 }
        let numbers = String(decoding: bytes[..<count], as: UTF8.self).split(separator: " ")
        return numbers.count > 1 ? Int(numbers[1]) ?? 0 : 0
    }
}
