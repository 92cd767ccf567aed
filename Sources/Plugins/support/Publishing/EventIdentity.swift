// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Makes the ids of a run's events: `HOST.BOOT.RUN.NUMBER`.
///
/// Every event has an id of its own: across hosts and across the chains of a host. Ids do not repeat even after the
/// spool that counts was erased, was restored from a backup, or could not be written.
package struct EventIdentity: Sendable {
    package let host: String
    /// The first 8 hex digits of the kernel's boot id.
    package let boot: String
    /// 8 random hex digits.
    package let run: String

    package init(host: String, boot: String, run: String) {
        (self.host, self.boot, self.run) = (host, boot, run)
    }

    /// Makes the identity of this run.
    package init(host: String) {
        let random = String(UInt32.random(in: 0...(.max)), radix: 16)
        self.init(
            host: EventName.word(host), boot: Self.bootID(),
            run: String(repeating: "0", count: 8 - random.utf8.count) + random)
    }

    package func id(_ number: UInt64) -> String { "\(host).\(boot).\(run).\(number)" }

    /// The host's name without its domain, as the kernel has it; `host` where it has none.
    package static func hostName() -> String {
        var bytes = [CChar](repeating: 0, count: 256)
        guard gethostname(&bytes, bytes.count - 1) == 0 else { return "host" }
        let name = String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let first = name.prefix { $0 != "." }
        return first.isEmpty ? "host" : String(first)
    }

    /// random(4): each boot has another one.
    private static func bootID() -> String {
        guard let file = fopen("/proc/sys/kernel/random/boot_id", "re") else { return "00000000" }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = fread(&bytes, 1, bytes.count, file)
        let digits = bytes[..<count].prefix(8)
        guard digits.count == 8, digits.allSatisfy({ (48...57).contains($0) || (97...102).contains($0) }) else {
            return "00000000"
        }
        return String(decoding: digits, as: UTF8.self)
    }
}

/// Names as parts of ids, subjects and topics.
package enum EventName {
    /// `text` with `_` for all but ASCII letters, digits, `-` and `_`; at most 64 characters; never empty.
    ///
    /// What has a meaning in a subject of NATS (`.`, `*`, `>`, white space) or a topic of MQTT (`/`, `+`, `#`) is gone.
    package static func word(_ text: String) -> String {
        let bytes = text.utf8.prefix(64).map { byte -> UInt8 in
            switch byte {
            case 48...57, 65...90, 97...122, 45, 95: byte
            default: 95
            }
        }
        return bytes.isEmpty ? "_" : String(decoding: bytes, as: UTF8.self)
    }
}
