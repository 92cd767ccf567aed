// SPDX-License-Identifier: Apache-2.0

import ServerAccess

/// The headers of PLAY and of sessions: `Range`, `Session`, `RTP-Info`, `Scale`.

/// From where to play (RFC 2326, 12.29 and 3.5 to 3.7).
enum PlayRange: Sendable, Equatable {
    /// `npt=now-`: the present moment of a live stream.
    case now
    /// `npt=0.000-` and the like, in seconds; nil for an open end.
    case seconds(from: Double, to: Double?)
    /// `clock=` and `smpte=`: times of a recording.
    case absolute(String)

    /// Nil for any other text.
    init?(_ text: String) {
        let text = ASCII.trimmed(text.split(separator: ";", omittingEmptySubsequences: false).first ?? "")
        guard let equals = text.firstIndex(of: "=") else { return nil }
        let unit = text[..<equals].lowercased()
        let value = ASCII.trimmed(text[text.index(after: equals)...])
        if unit == "clock" || unit.hasPrefix("smpte") {
            self = .absolute(value)
            return
        }
        guard unit == "npt", let dash = value.firstIndex(of: "-") else { return nil }
        let begin = ASCII.trimmed(value[..<dash])
        let end = ASCII.trimmed(value[value.index(after: dash)...])
        if ASCII.equalsIgnoringCase(begin, "now") {
            self = .now
            return
        }
        let to = end.isEmpty ? nil : Self.seconds(end)
        guard end.isEmpty || to != nil, let from = begin.isEmpty ? 0 : Self.seconds(begin) else { return nil }
        self = .seconds(from: from, to: to)
    }

    /// `12.5` or `0:01:12.5`.
    private static func seconds(_ text: String) -> Double? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 1 || parts.count == 3 else { return nil }
        var total = 0.0
        for part in parts {
            guard part.utf8.allSatisfy({ $0 >= 48 && $0 <= 57 || $0 == 46 }), let value = Double(part), value.isFinite
            else { return nil }
            total = total * 60 + value
        }
        return total
    }
}

/// `Session: 12345678;timeout=60` (RFC 2326, 12.37).
struct SessionHeader: Sendable, Equatable {
    var id: String
    var timeoutSeconds: Int?

    init(id: String, timeoutSeconds: Int? = nil) {
        self.id = id
        self.timeoutSeconds = timeoutSeconds
    }

    init?(_ text: String) {
        let parts = text.split(separator: ";", omittingEmptySubsequences: false).map { ASCII.trimmed($0) }
        guard let id = parts.first, !id.isEmpty, id.utf8.count <= 128, id.utf8.allSatisfy({ $0 < 128 }) else {
            return nil
        }
        self.id = id
        for part in parts.dropFirst() where ASCII.hasPrefixIgnoringCase(part, "timeout=") {
            timeoutSeconds = ASCII.number(part.dropFirst(8), atMost: 86_400).map { Int($0) }
        }
    }

    var text: String { id + (timeoutSeconds.map { ";timeout=\($0)" } ?? "") }
}

/// Where a stream stands when it begins to play (RFC 2326, 12.33).
struct RTPInfo: Sendable, Equatable {
    var url: String
    /// The sequence number of the first packet; nil where it is not known yet.
    var sequenceNumber: UInt16?
    var rtpTime: UInt32?

    init(url: String, sequenceNumber: UInt16? = nil, rtpTime: UInt32? = nil) {
        self.url = url
        self.sequenceNumber = sequenceNumber
        self.rtpTime = rtpTime
    }

    init?(_ text: String) {
        url = ""
        for part in text.split(separator: ";").map({ ASCII.trimmed($0) }) {
            if ASCII.hasPrefixIgnoringCase(part, "url=") { url = String(part.dropFirst(4)) }
            if ASCII.hasPrefixIgnoringCase(part, "seq=") {
                sequenceNumber = ASCII.number(part.dropFirst(4), atMost: 65535).map { UInt16($0) }
            }
            if ASCII.hasPrefixIgnoringCase(part, "rtptime=") {
                rtpTime = ASCII.number(part.dropFirst(8), atMost: UInt64(UInt32.max)).map { UInt32($0) }
            }
        }
        if url.isEmpty { return nil }
    }

    var text: String {
        "url=\(url)" + (sequenceNumber.map { ";seq=\($0)" } ?? "") + (rtpTime.map { ";rtptime=\($0)" } ?? "")
    }
}
