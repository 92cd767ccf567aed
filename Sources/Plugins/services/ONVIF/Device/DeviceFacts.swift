// SPDX-License-Identifier: Apache-2.0

import FrameCore
import ServerAccess

/// A stream of `rtsp-sink`, which is a profile of the device.
struct StreamFacts: Sendable, Equatable {
    /// The sink's id, which is the token of the profile.
    var id: String
    var port: Int
    /// The sink's own address, as a URL has it; nil where it listens at all addresses.
    var host: String?
    /// With its slash.
    var path: String
    /// Whether it is RTSPS.
    var isSecure: Bool
    var codec: Codec
    var width: Int
    var height: Int
    /// Zero for a variable rate.
    var rate: Rational
    /// Nil where quality decides, or nobody knows.
    var bitrateKbps: Int?
    /// Pictures from one keyframe to the next, at most; nil where nobody knows.
    var groupLength: Int?
    /// The profile_idc of H.264, or the general one of H.265.
    var codecProfile = 0
    /// The stage that gives the access units, which can be asked for keyframes.
    var unitStage: String
    /// The stage whose pictures the encoder takes; nil without an encoder, and where they may not be shown.
    var pictureStage: String?
    /// Where its pictures come from: the token of the video source.
    var source: String

    /// Whole pictures per second, at least 1; 0 for a variable rate.
    var wholeRate: Int {
        guard rate.numerator > 0, rate.denominator > 0 else { return 0 }
        return max(Int((Double(rate.numerator) / Double(rate.denominator)).rounded()), 1)
    }
}

/// Who may play: the same for all streams of a device, and for its pictures and events.
struct Audience: Sendable, Equatable {
    /// The sinks' option `users`.
    var users: String?
    /// Their option `allow`: no ranges allow everybody.
    var allow: [String] = []

    func takes(_ address: IPAddress) -> Bool {
        allow.isEmpty || allow.contains { AddressRange($0)?.contains(address) ?? false }
    }
}

/// What the device is at this moment.
struct DeviceFacts: Sendable, Equatable {
    static let mostStreams = 32

    /// What people call it.
    var name: String
    var location: String
    var identity: DeviceIdentity
    var audience = Audience()
    /// Whether it answers WS-Discovery.
    var isDiscoverable = false
    /// The largest picture first.
    var streams: [StreamFacts] = []
    /// Stages that tell of motion, and those that tell of faces, by id, with the video source that they look at.
    var motionStages: [String: String] = [:]
    var faceStages: [String: String] = [:]

    func stream(_ token: String) -> StreamFacts? { streams.first { $0.id == token } }

    /// Video sources, each once, with its largest picture.
    var sources: [StreamFacts] {
        var seen: Set<String> = []
        return streams.filter { seen.insert($0.source).inserted }
    }

    /// Scopes by which a device is found (ONVIF's core specification, 7.3.2.2).
    var scopes: [String] {
        let kinds = ["type/video_encoder", "type/Network_Video_Transmitter", "Profile/Streaming", "Profile/T"]
        let own = ["hardware/framehost", "name/\(URLText.escaped(name))"]
        return (kinds + own + (location.isEmpty ? [] : ["location/\(URLText.escaped(location))"])).map {
            "onvif://www.onvif.org/\($0)"
        }
    }
}

/// Text in addresses.
enum URLText {
    /// All bytes but the unreserved ones as percent and two digits (RFC 3986, 2).
    static func escaped(_ text: String) -> String {
        var result = ""
        for byte in text.utf8 {
            switch byte {
            case 48...57, 65...90, 97...122, 45, 46, 95, 126: result.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                let code = String(byte, radix: 16, uppercase: true)
                result += "%" + (byte < 16 ? "0" : "") + code
            }
        }
        return result
    }

    /// Nil for what is no such text.
    static func unescaped(_ text: some StringProtocol) -> String? {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == 37 else {
                bytes.append(byte)
                continue
            }
            guard rest.count >= 2, let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) else {
                return nil
            }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
