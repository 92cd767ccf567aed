// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The media service of profile T, as far as streams need it: it has words for H.265.
enum Media2Service {
    static let capabilities = XMLNode(
        "tr2:Capabilities",
        [
            ("SnapshotUri", "true"), ("Rotation", "false"), ("VideoSourceMode", "false"), ("OSD", "false"),
            ("Mask", "false"), ("SourceMask", "false"),
        ],
        [
            XMLNode(
                "tr2:ProfileCapabilities",
                [
                    ("MaximumNumberOfProfiles", "\(DeviceFacts.mostStreams)"),
                    ("ConfigurationsSupported", "VideoSource VideoEncoder"),
                ]),
            XMLNode(
                "tr2:StreamingCapabilities",
                [("RTSPStreaming", "true"), ("RTPMulticast", "false"), ("RTP_RTSP_TCP", "true")]),
        ])

    /// Nil for an operation that it does not have.
    static func answer(_ call: Call, _ media: MediaService) throws(SOAPFault) -> XMLNode? {
        let facts = call.facts
        func response(_ children: [XMLNode]) -> XMLNode { XMLNode("tr2:\(call.body.name)Response", [], children) }
        func stream() throws(SOAPFault) -> StreamFacts {
            try MediaNodes.stream(call, MadeProfiles(), call.token("ProfileToken"))
        }
        /// Those that the request means, by the token of a configuration or a profile.
        func meant() throws(SOAPFault) -> [StreamFacts] {
            let token = [call.token("ConfigurationToken"), call.token("ProfileToken")].first { !$0.isEmpty } ?? ""
            guard !token.isEmpty else { return facts.streams }
            guard let one = facts.stream(token) else { throw .noConfiguration(token) }
            return [one]
        }
        switch call.body.name {
        case "GetServiceCapabilities": return response([capabilities])
        case "GetProfiles":
            let token = call.token("Token")
            if !token.isEmpty, facts.stream(token) == nil { throw .noProfile(token) }
            let types = Set(call.body.children.filter { $0.name == "Type" }.map(\.value))
            return response(facts.streams.filter { token.isEmpty || $0.id == token }.map { profile(facts, $0, types) })
        case "GetStreamUri": return response([XMLNode("tr2:Uri", MediaNodes.streamAddress(call, try stream()))])
        case "GetSnapshotUri":
            return response([XMLNode("tr2:Uri", try MediaNodes.snapshotAddress(call, try stream()))])
        case "GetVideoEncoderConfigurations":
            return response(try meant().map { encoder($0, as: "tr2:Configurations") })
        case "GetVideoEncoderConfigurationOptions": return response(try meant().map(options))
        case "GetVideoSourceConfigurations":
            return response(
                facts.sources.map { MediaNodes.sourceConfiguration(facts, $0, as: "tr2:Configurations") })
        case "GetVideoEncoderInstances":
            let count = facts.streams.count
            return response([XMLNode("tr2:Info", [], [XMLNode("tr2:Total", count)])])
        case "SetSynchronizationPoint":
            media.requestKeyframe(try stream().unitStage)
            return response([])
        case "GetAudioSourceConfigurations", "GetAudioEncoderConfigurations", "GetAudioOutputConfigurations",
            "GetAudioDecoderConfigurations", "GetMetadataConfigurations", "GetAnalyticsConfigurations", "GetMasks",
            "GetOSDs":
            return response([])
        default: return nil
        }
    }

    private static func profile(_ facts: DeviceFacts, _ stream: StreamFacts, _ types: Set<String>) -> XMLNode {
        var configurations: [XMLNode] = []
        let source = facts.sources.first { $0.source == stream.source } ?? stream
        if types.contains("All") || types.contains("VideoSource") {
            configurations.append(MediaNodes.sourceConfiguration(facts, source, as: "tr2:VideoSource"))
        }
        if types.contains("All") || types.contains("VideoEncoder") {
            configurations.append(encoder(stream, as: "tr2:VideoEncoder"))
        }
        return XMLNode(
            "tr2:Profiles", [("token", stream.id), ("fixed", "true")],
            [XMLNode("tr2:Name", stream.id)]
                + (configurations.isEmpty ? [] : [XMLNode("tr2:Configurations", [], configurations)]))
    }

    private static func codecProfile(_ stream: StreamFacts) -> String {
        guard stream.codec == .h265 else { return MediaNodes.h264Profile(stream) }
        return stream.codecProfile == 2 ? "Main10" : "Main"
    }

    private static func codec(_ stream: StreamFacts) -> String { stream.codec == .h265 ? "H265" : "H264" }

    private static func encoder(_ stream: StreamFacts, as name: String) -> XMLNode {
        XMLNode(
            name,
            [
                ("token", stream.id), ("GovLength", "\(stream.groupLength ?? max(stream.wholeRate, 1))"),
                ("Profile", codecProfile(stream)),
            ],
            [
                XMLNode("tt:Name", stream.id), XMLNode("tt:UseCount", 1), XMLNode("tt:Encoding", codec(stream)),
                MediaNodes.resolution(stream),
                XMLNode(
                    "tt:RateControl", [("ConstantBitRate", "false")],
                    [
                        XMLNode("tt:FrameRateLimit", rate(stream)),
                        XMLNode("tt:BitrateLimit", stream.bitrateKbps ?? 0),
                    ]),
                MediaNodes.multicast, XMLNode("tt:Quality", "1"),
            ])
    }

    /// A decimal number, as this service has it.
    private static func rate(_ stream: StreamFacts) -> String {
        guard stream.rate.numerator > 0, stream.rate.denominator > 0 else { return "0" }
        let hundredths = Int((100 * Double(stream.rate.numerator) / Double(stream.rate.denominator)).rounded())
        let rest = hundredths % 100
        return rest == 0 ? "\(hundredths / 100)" : "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest)"
    }

    private static func options(_ stream: StreamFacts) -> XMLNode {
        let group = stream.groupLength ?? max(stream.wholeRate, 1)
        return XMLNode(
            "tr2:Options",
            [
                ("GovLengthRange", "\(group) \(group)"), ("FrameRatesSupported", rate(stream)),
                ("ProfilesSupported", codecProfile(stream)), ("ConstantBitRateSupported", "false"),
            ],
            [
                XMLNode("tt:Encoding", codec(stream)),
                XMLNode("tt:QualityRange", [], [XMLNode("tt:Min", 1), XMLNode("tt:Max", 1)]),
                MediaNodes.resolution(stream, as: "tt:ResolutionsAvailable"),
                XMLNode(
                    "tt:BitrateRange", [],
                    [
                        XMLNode("tt:Min", stream.bitrateKbps ?? 0), XMLNode("tt:Max", stream.bitrateKbps ?? 0),
                    ]),
            ])
    }
}
