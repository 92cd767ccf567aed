// SPDX-License-Identifier: Apache-2.0

/// What an RTSP server says of its stream (SDP, RFC 4566), made plain for libavformat: only what is taken of it, and what
/// cameras leave out or write otherwise as the RFCs have it. Pure.
struct SessionDescription: Equatable, Sendable {
    /// One track that is taken.
    struct Track: Equatable, Sendable {
        /// Its lines, from `m=` on.
        var lines: [String]
        /// What `a=control:` says; nil where nothing does.
        var control: String?
    }

    /// The video first.
    let tracks: [Track]
    /// What `a=control:` says of the whole.
    let control: String?
    /// Whether there is sound that is not taken.
    let leavesSound: Bool
    /// Whether there is more than one video, of which the first is taken.
    let hasSeveralVideos: Bool

    /// The text that libavformat gets.
    var text: String {
        let lines = ["v=0", "o=- 0 0 IN IP4 0.0.0.0", "s=-", "c=IN IP4 0.0.0.0", "t=0 0"] + tracks.flatMap(\.lines)
        return lines.map { $0 + "\r\n" }.joined()
    }

    /// - Parameter takesSound: Whether a track of sound is taken too, where there is one.
    init(_ text: String, takesSound: Bool) {
        var sections: [[Substring]] = [[]]
        for line in text.split(whereSeparator: { $0 == "\r" || $0 == "\n" || $0 == "\r\n" }).prefix(2048) {
            if line.hasPrefix("m=") { sections.append([]) }
            sections[sections.count - 1].append(line)
        }
        control = Self.value("control", in: sections[0])
        func tracks(_ kind: String) -> [Track] {
            sections.dropFirst().filter { section in
                // A way back to the camera's loudspeaker gives nothing (ONVIF Streaming Specification, 5.3).
                section[0].lowercased().hasPrefix("m=\(kind) ") && !section.contains("a=sendonly")
            }.compactMap { Self.track($0, isVideo: kind == "video") }
        }
        let (videos, sound) = (tracks("video"), tracks("audio").first)
        hasSeveralVideos = videos.count > 1
        leavesSound = sound != nil && !takesSound
        self.tracks = [videos.first, takesSound ? sound : nil].compactMap { $0 }
    }

    /// The value of the first attribute of a name.
    private static func value(_ name: String, in section: [Substring]) -> String? {
        let start = "a=\(name):"
        let line = section.first { $0.prefix(start.count).lowercased() == start }
        return line.map { trimmed($0.dropFirst(start.count)) }
    }

    private static func trimmed(_ text: Substring) -> String {
        let start = text.drop { $0 == " " || $0 == "\t" }
        return String(start.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
    }

    /// `m=video 0 RTP/AVP 96` with one payload type: the first that is described, or that needs no description.
    private static func track(_ section: [Substring], isVideo: Bool) -> Track? {
        let types = section[0].split(separator: " ").dropFirst(3).compactMap { Int($0) }.filter { 0...127 ~= $0 }
        func attribute(_ name: String, _ type: Int) -> String? {
            for line in section where line.hasPrefix("a=\(name):") {
                let words = line.dropFirst(name.count + 3).split(separator: " ", maxSplits: 1)
                if words.first.flatMap({ Int($0) }) == type { return words.count > 1 ? trimmed(words[1]) : "" }
            }
            return nil
        }
        guard let type = types.first(where: { $0 < 96 || attribute("rtpmap", $0) != nil }) ?? types.first else {
            return nil
        }
        let parameters = attribute("fmtp", type)
        var mapping = attribute("rtpmap", type)
        if mapping == nil, type >= 96, isVideo { mapping = coding(of: parameters ?? "") }
        if isVideo, let written = mapping {
            // A video has no channels (RFC 4566, 6): libavformat takes the codec of `H264/90000/1` for one of sound.
            mapping = written.split(separator: "/").prefix(2).joined(separator: "/")
        }
        var lines = ["m=\(isVideo ? "video" : "audio") 0 RTP/AVP \(type)"]
        if let mapping { lines.append("a=rtpmap:\(type) \(mapping)") }
        if let parameters { lines.append("a=fmtp:\(type) \(parameters)") }
        return Track(lines: lines, control: value("control", in: section))
    }

    /// What a video without a name is, by its parameters (RFC 7798, 7.1; RFC 6184, 8.1): nearly always H.264.
    private static func coding(of parameters: String) -> String {
        parameters.lowercased().contains("sprop-sps") || parameters.lowercased().contains("sprop-vps")
            ? "H265/90000" : "H264/90000"
    }

    /// Where a control attribute leads (RFC 2326, C.1.1; RFC 1808): `*` and none are the address itself.
    static func address(_ control: String?, base: String) -> String {
        guard let control, !control.isEmpty, control != "*" else { return base }
        if control.lowercased().hasPrefix("rtsp://") { return control }
        if control.hasPrefix("/") {
            let start = base.firstRange(of: "://")?.upperBound ?? base.startIndex
            return base[..<(base[start...].firstIndex(of: "/") ?? base.endIndex)] + control
        }
        return base + (base.hasSuffix("/") || control.hasPrefix("?") ? "" : "/") + control
    }
}
