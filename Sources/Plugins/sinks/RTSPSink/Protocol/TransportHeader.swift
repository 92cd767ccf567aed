// SPDX-License-Identifier: Apache-2.0

import ServerAccess

/// One transport of a `Transport` header (RFC 2326, 12.39).
struct TransportSpec: Sendable, Equatable {
    enum Lower: Sendable { case udp, tcp }

    /// Two ports or channels that follow each other: RTP and RTCP.
    struct Pair<Value: FixedWidthInteger & Sendable>: Sendable, Equatable {
        var rtp: Value
        var rtcp: Value
        init(_ rtp: Value, _ rtcp: Value) {
            self.rtp = rtp
            self.rtcp = rtcp
        }

        func overlaps(_ other: Pair) -> Bool {
            [rtp, rtcp].contains { $0 == other.rtp || $0 == other.rtcp }
        }
    }

    var lower: Lower
    var isMulticast = false
    /// Interleaved channels.
    var interleaved: Pair<UInt8>?
    var clientPort: Pair<UInt16>?
    var serverPort: Pair<UInt16>?
    var destination: String?
    var source: String?
    var ssrc: UInt32?
    /// `PLAY` where the header does not say.
    var mode: String?

    init(_ lower: Lower) { self.lower = lower }

    /// Nil for a profile that is not RTP/AVP, and for a known parameter with a wrong value. Unknown parameters are
    /// ignored.
    init?(_ text: some StringProtocol) {
        let parts = text.split(separator: ";").map { ASCII.trimmed($0) }
        guard let profile = parts.first, text.utf8.allSatisfy({ $0 < 128 }) else { return nil }
        switch profile.uppercased() {
        case "RTP/AVP", "RTP/AVP/UDP": lower = .udp
        case "RTP/AVP/TCP": lower = .tcp
        default: return nil
        }
        for part in parts.dropFirst() {
            guard let equals = part.firstIndex(of: "=") else {
                if ASCII.equalsIgnoringCase(part, "multicast") { isMulticast = true }
                continue
            }
            guard set(part[..<equals].lowercased(), ASCII.trimmed(part[part.index(after: equals)...])) else {
                return nil
            }
        }
    }

    private mutating func set(_ name: String, _ value: String) -> Bool {
        switch name {
        case "interleaved": interleaved = Self.pair(value)
        case "client_port": clientPort = Self.pair(value)
        case "server_port": serverPort = Self.pair(value)
        case "destination": destination = value
        case "source": source = value
        case "mode": mode = value.filter { $0 != "\"" }.uppercased()
        case "ssrc":
            guard value.utf8.count <= 8, let number = UInt32(value, radix: 16) else { return true }
            ssrc = number
        default: return true
        }
        switch name {
        case "interleaved": return interleaved != nil
        case "client_port": return clientPort != nil
        case "server_port": return serverPort != nil
        default: return true
        }
    }

    /// `4588-4589`. With only one number the second is the next one. Nil for port 0, and for numbers that do not fit.
    private static func pair<Value: FixedWidthInteger & Sendable>(_ text: String) -> Pair<Value>? {
        let numbers = text.split(separator: "-", omittingEmptySubsequences: false).map {
            ASCII.number($0, atMost: UInt64(Value.max))
        }
        guard numbers.count == 1 || numbers.count == 2, let first = numbers[0] else { return nil }
        guard let second = numbers.count == 2 ? numbers[1] : first + 1, second <= UInt64(Value.max), second != first
        else { return nil }
        if Value.bitWidth == 16, first == 0 || second == 0 { return nil }
        return Pair(Value(first), Value(second))
    }

    var text: String {
        var parts = [lower == .tcp ? "RTP/AVP/TCP" : "RTP/AVP", isMulticast ? "multicast" : "unicast"]
        if let destination { parts.append("destination=\(destination)") }
        if let source { parts.append("source=\(source)") }
        if let interleaved { parts.append("interleaved=\(interleaved.rtp)-\(interleaved.rtcp)") }
        if let clientPort { parts.append("client_port=\(clientPort.rtp)-\(clientPort.rtcp)") }
        if let serverPort { parts.append("server_port=\(serverPort.rtp)-\(serverPort.rtcp)") }
        if let ssrc { parts.append("ssrc=\(ASCII.hex(ssrc, digits: 8, uppercase: true))") }
        if let mode { parts.append("mode=\(mode)") }
        return parts.joined(separator: ";")
    }
}

/// All transports of a `Transport` header, best first.
enum TransportHeader {
    /// The most transports that are read.
    static let mostSpecs = 16

    static func parse(_ text: String) -> [TransportSpec] {
        text.split(separator: ",").prefix(mostSpecs).compactMap { TransportSpec(ASCII.trimmed($0)) }
    }
}
