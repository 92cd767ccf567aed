// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Parts of answers that both media services have.
enum MediaNodes {
    static func sourceConfiguration(_ facts: DeviceFacts, _ source: StreamFacts, as name: String) -> XMLNode {
        let count = facts.streams.filter { $0.source == source.source }.count
        return XMLNode(
            name, [("token", source.source)],
            [
                XMLNode("tt:Name", source.source), XMLNode("tt:UseCount", count),
                XMLNode("tt:SourceToken", source.source),
                XMLNode(
                    "tt:Bounds",
                    [("x", "0"), ("y", "0"), ("width", "\(source.width)"), ("height", "\(source.height)")]),
            ])
    }

    static func resolution(_ stream: StreamFacts, as name: String = "tt:Resolution") -> XMLNode {
        XMLNode(name, [], [XMLNode("tt:Width", stream.width), XMLNode("tt:Height", stream.height)])
    }

    static let multicast = XMLNode(
        "tt:Multicast", [],
        [
            XMLNode(
                "tt:Address", [], [XMLNode("tt:Type", "IPv4"), XMLNode("tt:IPv4Address", "0.0.0.0")]),
            XMLNode("tt:Port", 0), XMLNode("tt:TTL", 1), XMLNode("tt:AutoStart", false),
        ])

    static func h264Profile(_ stream: StreamFacts) -> String {
        switch stream.codecProfile {
        case 66: "Baseline"
        case 88: "Extended"
        case 77, 0: "Main"
        default: "High"
        }
    }

    static func streamAddress(_ call: Call, _ stream: StreamFacts) -> String {
        let path = stream.path.split(separator: "/", omittingEmptySubsequences: false).map {
            URLText.escaped(String($0))
        }
        let scheme = stream.isSecure ? "rtsps" : "rtsp"
        return "\(scheme)://\(stream.host ?? call.host):\(stream.port)\(path.joined(separator: "/"))"
    }

    static func snapshotAddress(_ call: Call, _ stream: StreamFacts) throws(SOAPFault) -> String {
        guard stream.pictureStage != nil else {
            throw .receiver(
                "ter:ActionNotSupported",
                reason: "The stream '\(stream.id)' has no snapshots: nothing encodes it here, or they may not be shown."
            )
        }
        return call.base + ServicePath.snapshot + URLText.escaped(stream.id)
    }

    /// The stream of a profile, of this device or made by a client.
    static func stream(_ call: Call, _ made: MadeProfiles, _ token: String) throws(SOAPFault) -> StreamFacts {
        if let stream = call.facts.stream(token) { return stream }
        guard let profile = made[token] else { throw .noProfile(token) }
        guard let encoder = profile.encoder, let stream = call.facts.stream(encoder), profile.source != nil else {
            throw .sender(
                "ter:InvalidArgVal", "ter:IncompleteConfiguration",
                reason: "The profile has no encoder or no video source.")
        }
        return stream
    }
}
