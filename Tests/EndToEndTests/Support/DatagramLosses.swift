// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Datagrams that the kernel threw away since a program did not read in time: on a busy machine a player over UDP has
/// no part in every packet, and the server none in that.
enum DatagramLosses {
    /// Since the network namespace was made: `RcvbufErrors` of /proc/net/snmp and snmp6.
    static var count: Int {
        func text(_ name: String) -> [Substring] {
            ((try? String(contentsOfFile: "/proc/net/\(name)", encoding: .utf8)) ?? "").split(separator: "\n")
        }
        let udp = text("snmp").filter { $0.hasPrefix("Udp:") }.map { $0.split(separator: " ") }
        let column = udp.first?.firstIndex(of: "RcvbufErrors")
        let v4 = udp.count > 1 ? column.flatMap { Int(udp[1][$0]) } ?? 0 : 0
        let v6 = text("snmp6").first { $0.hasPrefix("Udp6RcvbufErrors") }
        return v4 + (v6?.split(separator: "\t").last.flatMap { Int($0) } ?? 0)
    }

    /// What `body` gives: again where it is not good, or fails, and the kernel has lost datagrams meanwhile, five times
    /// at most.
    static func retrying<Value>(
        _ body: () throws -> Value, until isGood: (Value) -> Bool
    ) throws -> (value: Value, tries: Int) {
        var tries = 0
        while true {
            let before = count
            tries += 1
            do {
                let value = try body()
                if isGood(value) || count == before || tries == 5 { return (value, tries) }
            } catch {
                if count == before || tries == 5 { throw error }
            }
        }
    }
}
