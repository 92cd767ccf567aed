// SPDX-License-Identifier: Apache-2.0

import Glibc

/// How much memory a chain may take: what the machine has to give without swapping, or what a control group above the
/// process leaves.
///
/// The figure is that of one moment: other programs take and free memory. [control thread]
public struct AvailableMemory: Sendable, Equatable {
    /// The memory in bytes.
    public var bytes: Int
    /// What has it, for people: "this machine", "the control group /app".
    public var holder: String

    /// Says how much there is.
    public init(bytes: Int, holder: String = "this machine") {
        self.bytes = bytes
        self.holder = holder
    }

    /// What is left for the next of several chains, when those before it take `bytes`.
    public func left(besideOtherChains bytes: Int) -> AvailableMemory {
        guard bytes > 0 else { return self }
        return AvailableMemory(
            bytes: max(0, self.bytes - min(bytes, self.bytes)), holder: "\(holder), beside the other chains,")
    }

    /// What there is at this moment.
    ///
    /// The least of `MemAvailable` of /proc/meminfo (proc(5)) and what each control group on the way to the root leaves
    /// (cgroup v2: `memory.max` less `memory.current`, with the page cache counted as free; v1:
    /// `memory.limit_in_bytes`).
    ///
    /// - Parameter root: Where /proc and /sys are looked for, for tests.
    /// - Returns: Nil where the system does not say it.
    public static func now(root: String = "") -> AvailableMemory? {
        var least: AvailableMemory?
        func consider(_ bytes: Int?, _ holder: String) {
            guard let bytes, bytes < least?.bytes ?? .max else { return }
            least = AvailableMemory(bytes: bytes, holder: holder)
        }
        consider(kilobytes("MemAvailable", in: text("\(root)/proc/meminfo")), "this machine")
        for line in text("\(root)/proc/self/cgroup").split(separator: "\n") {
            // hierarchy:controllers:path (cgroups(7))
            let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3 else { continue }
            let isUnified = parts[0] == "0"
            guard isUnified || parts[1].split(separator: ",").contains("memory") else { continue }
            var path = String(parts[2])
            while true {
                let folder = "\(root)/sys/fs/cgroup\(isUnified ? "" : "/memory")\(path == "/" ? "" : path)"
                consider(
                    isUnified
                        ? left(folder, "memory.max", "memory.current")
                        : left(folder, "memory.limit_in_bytes", "memory.usage_in_bytes"),
                    "the control group \(path)")
                guard path != "/", let slash = path.lastIndex(of: "/") else { break }
                path = slash == path.startIndex ? "/" : String(path[..<slash])
            }
        }
        return least
    }

    /// What a group's limit leaves; nil without a limit ("max", or a limit beyond any memory).
    private static func left(_ folder: String, _ limitName: String, _ usageName: String) -> Int? {
        guard let limit = number(text("\(folder)/\(limitName)")), limit < 1 << 60 else { return nil }
        let usage = number(text("\(folder)/\(usageName)")) ?? 0
        let cache = ["inactive_file", "active_file"].compactMap { field($0, in: text("\(folder)/memory.stat")) }.reduce(
            0, sum)
        return max(0, limit - max(0, usage - min(cache, usage)))
    }

    private static func number(_ text: String) -> Int? { Int(text.split(whereSeparator: \.isWhitespace).first ?? "") }

    /// `Name:   123 kB` in bytes.
    private static func kilobytes(_ name: String, in text: String) -> Int? {
        field(name + ":", in: text).map { product($0, 1024) }
    }

    private static func field(_ name: String, in text: String) -> Int? {
        for line in text.split(separator: "\n") {
            let words = line.split(whereSeparator: \.isWhitespace)
            if words.count >= 2, words[0] == name { return Int(words[1]).flatMap { $0 >= 0 ? $0 : nil } }
        }
        return nil
    }

    /// The beginning of a small kernel file; empty where it cannot be read.
    private static func text(_ path: String) -> String {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return "" }
        defer { close(file) }
        var buffer = [UInt8](repeating: 0, count: 32768)
        var used = 0
        while used < buffer.count {
            let count = buffer.withUnsafeMutableBytes { read(file, $0.baseAddress! + used, $0.count - used) }
            guard count > 0 else { break }
            used += count
        }
        return String(decoding: buffer[..<used], as: UTF8.self)
    }

    // MARK: Arithmetic that stays at the largest number

    static func sum(_ a: Int, _ b: Int) -> Int {
        let (sum, overflow) = a.addingReportingOverflow(b)
        return overflow ? .max : sum
    }

    static func product(_ a: Int, _ b: Int) -> Int {
        let (product, overflow) = a.multipliedReportingOverflow(by: b)
        return overflow ? .max : product
    }

    /// A number of bytes for people: `1.1 GiB`; less than 0.1 MiB counts as that much, unless it is 0.
    public static func text(_ bytes: Int) -> String {
        let (unit, name) = bytes >= 1 << 30 ? (1 << 30, "GiB") : (1 << 20, "MiB")
        let (whole, tenth) = (bytes / unit, bytes % unit / (unit / 10))
        return "\(whole).\(whole == 0 && tenth == 0 && bytes > 0 ? 1 : min(tenth, 9)) \(name)"
    }
}
