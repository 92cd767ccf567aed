// SPDX-License-Identifier: Apache-2.0

import FrameCore
import ServerAccess

/// The WebSocket at `/api/v1/live`: names, limits and the head of binary messages. docs/control.md describes it for
/// programs.
enum LiveProtocol {
    static let path = "/api/v1/live"
    /// The subprotocol that the server chooses where it is offered.
    static let name = "framehost.v1"
    /// Offered beside ``name``, with the token's UTF-8 in hexadecimal: pages cannot set `Authorization`, and an address
    /// would appear in logs.
    static let tokenPrefix = "framehost.token."

    /// Sockets at once.
    static let mostSockets = 64
    /// Previews of one socket.
    static let mostPreviews = 32
    /// Bytes of a message from a client, all of its frames together.
    static let mostMessageBytes = 16 << 10
    static let mostFragments = 16
    /// Messages from a client within a second: 32 previews at 60 pictures a second are 1,920 answers.
    static let mostMessagesPerSecond = 10_000
    /// Bytes that wait for a client's socket before units are left out.
    static let mostPendingBytes = 4 << 20
    /// With this many waiting bytes a client is disconnected, even if it still takes some.
    static let longestPending = 32 << 20
    static let mostPendingMessages = 4096
    /// Pixels of either side of a preview.
    static let sides = 16...4096
    /// Bytes before the payload of a binary message.
    static let headBytes = 40

    /// The subprotocols that a client offers, in its order (RFC 6455 §11.3.4: several fields are one list).
    static func offered(in head: RequestHead) -> [Substring] {
        head.fields.filter { $0.name == "sec-websocket-protocol" }.flatMap { field in
            field.value.split(separator: ",").map { $0.drop { $0 == " " || $0 == "\t" } }.map { text in
                text.prefix { $0 != " " && $0 != "\t" }
            }
        }
    }

    /// The token that a client offers; the inner nil for a token that is not valid hexadecimal.
    static func token(offeredIn head: RequestHead) -> String?? {
        guard let field = offered(in: head).first(where: { $0.hasPrefix(tokenPrefix) }) else { return nil }
        let digits = Array(field.utf8.dropFirst(tokenPrefix.utf8.count))
        guard digits.count % 2 == 0, digits.count <= 512 else { return .some(nil) }
        var bytes: [UInt8] = []
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = Self.value(digits[index]), let low = Self.value(digits[index + 1]) else {
                return .some(nil)
            }
            bytes.append(high << 4 | low)
        }
        return .some(String(validating: bytes, as: UTF8.self))
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case 48...57: digit - 48
        case 65...70: digit - 55
        case 97...102: digit - 87
        default: nil
        }
    }
}

/// The head of a binary message, before a picture or an access unit: 40 bytes, all numbers big-endian.
struct LiveHead: Sendable, Equatable {
    enum Kind: UInt8, Sendable {
        case jpeg = 1
        /// An access unit with start codes (ITU-T H.264 Annex B), SPS and PPS in it where it is a keyframe.
        case h264 = 2
        /// The same of H.265, with a VPS too.
        case h265 = 3

        /// The codec of the access units; nil for pictures that are encoded for the preview.
        var codec: Codec? {
            switch self {
            case .jpeg: nil
            case .h264: .h264
            case .h265: .h265
            }
        }
    }

    var kind: Kind
    /// Whether it can be decoded alone.
    var isKeyframe = true
    /// Whether messages before it were left out, or the stream had a gap.
    var followsGap = false
    /// How the viewer must show it: mirrored first, then turned clockwise by quarters. A JPEG is upright already.
    var orientation = Orientation.up
    /// Whether it is mirrored after that, because the camera faces the person who looks at it.
    var isMirroredInPreviews = false
    var preview: UInt16
    /// Rises by one with each message of a preview. The client answers with it.
    var number: UInt32
    var sequenceNumber: UInt64
    /// Nanoseconds of the clock that a `pong` tells.
    var capturedAt: Int64
    /// Nanoseconds; zero for a JPEG.
    var pts: Int64 = 0
    /// PTS − DTS, microseconds.
    var reorderUs: UInt32 = 0
    /// Microseconds; zero when unknown.
    var durationUs: UInt32 = 0

    init(
        kind: Kind, isKeyframe: Bool = true, followsGap: Bool = false, orientation: Orientation = .up,
        isMirroredInPreviews: Bool = false, preview: UInt16, number: UInt32, sequenceNumber: UInt64, capturedAt: Int64,
        pts: Int64 = 0, reorderUs: UInt32 = 0, durationUs: UInt32 = 0
    ) {
        (self.kind, self.isKeyframe, self.followsGap, self.orientation) = (kind, isKeyframe, followsGap, orientation)
        self.isMirroredInPreviews = isMirroredInPreviews
        (self.preview, self.number, self.sequenceNumber) = (preview, number, sequenceNumber)
        (self.capturedAt, self.pts, self.reorderUs, self.durationUs) = (capturedAt, pts, reorderUs, durationUs)
    }

    init(_ unit: StageUnit.Header, kind: Kind, preview: UInt16, number: UInt32, followsGap: Bool) {
        self.init(
            kind: kind, isKeyframe: unit.isKeyframe, followsGap: followsGap, orientation: unit.orientation,
            isMirroredInPreviews: unit.isMirroredInPreviews, preview: preview, number: number,
            sequenceNumber: unit.sequenceNumber, capturedAt: unit.capturedAt, pts: unit.pts.nanoseconds,
            reorderUs: UInt32(clamping: (unit.pts.nanoseconds &- unit.dts.nanoseconds) / 1000),
            durationUs: UInt32(clamping: unit.duration.nanoseconds / 1000))
    }

    var bytes: [UInt8] {
        var flags: UInt8 = isKeyframe ? 1 : 0
        if followsGap { flags |= 2 }
        if orientation.isMirrored { flags |= 4 }
        flags |= UInt8(orientation.quarterTurns) << 3
        if isMirroredInPreviews { flags |= 32 }
        var bytes = [kind.rawValue, flags]
        bytes.reserveCapacity(LiveProtocol.headBytes)
        func add(_ value: some FixedWidthInteger) {
            withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
        }
        add(preview)
        add(number)
        add(sequenceNumber)
        add(capturedAt)
        add(pts)
        add(reorderUs)
        add(durationUs)
        return bytes
    }
}
