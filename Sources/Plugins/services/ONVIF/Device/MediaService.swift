// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The media service of profile S. H.265 has no words there: a profile of such a stream has no encoder configuration
/// (``Media2Service`` has one).
struct MediaService: Sendable {
    static let capabilities = XMLNode(
        "trt:Capabilities",
        [
            ("SnapshotUri", "true"), ("Rotation", "false"), ("VideoSourceMode", "false"), ("OSD", "false"),
            ("TemporaryOSDText", "false"), ("EXICompression", "false"),
        ],
        [
            XMLNode(
                "trt:ProfileCapabilities",
                [("MaximumNumberOfProfiles", "\(DeviceFacts.mostStreams + MadeProfiles.most)")]),
            XMLNode(
                "trt:StreamingCapabilities",
                [
                    ("RTPMulticast", "false"), ("RTP_TCP", "true"), ("RTP_RTSP_TCP", "true"),
                    ("NonAggregateControl", "false"), ("NoRTSPStreaming", "false"),
                ]),
        ])

    /// Profiles of clients.
    let made = Locked(MadeProfiles())

    /// Asks a stage for a keyframe.
    let requestKeyframe: @Sendable (_ stage: String) -> Void

    /// Nil for an operation that it does not have.
    func answer(_ call: Call) throws(SOAPFault) -> XMLNode? {
        let facts = call.facts
        made.withLock { $0.use(call.token("ProfileToken")) }
        func response(_ children: [XMLNode]) -> XMLNode { XMLNode("trt:\(call.body.name)Response", [], children) }
        switch call.body.name {
        case "GetServiceCapabilities": return response([Self.capabilities])
        case "GetProfiles":
            return response(
                facts.streams.map { profile(facts, $0, as: "trt:Profiles") }
                    + made.withLock { $0.profiles }.map { profile(facts, $0, as: "trt:Profiles") })
        case "GetProfile":
            let token = call.token("ProfileToken")
            if let stream = facts.stream(token) { return response([profile(facts, stream, as: "trt:Profile")]) }
            guard let made = made.withLock({ $0[token] }) else { throw .noProfile(token) }
            return response([profile(facts, made, as: "trt:Profile")])
        case "GetVideoSources":
            return response(
                facts.sources.map { source in
                    XMLNode(
                        "trt:VideoSources", [("token", source.source)],
                        [XMLNode("tt:Framerate", "\(source.wholeRate)"), MediaNodes.resolution(source)])
                })
        case "GetStreamUri": return response([address(MediaNodes.streamAddress(call, try stream(call)))])
        case "GetSnapshotUri": return response([address(try MediaNodes.snapshotAddress(call, try stream(call)))])
        case "SetSynchronizationPoint":
            requestKeyframe(try stream(call).unitStage)
            return response([])
        case "GetAudioSources", "GetAudioOutputs", "GetAudioSourceConfigurations", "GetAudioEncoderConfigurations",
            "GetAudioOutputConfigurations", "GetAudioDecoderConfigurations", "GetMetadataConfigurations",
            "GetCompatibleAudioSourceConfigurations", "GetCompatibleAudioEncoderConfigurations",
            "GetCompatibleMetadataConfigurations", "GetVideoAnalyticsConfigurations",
            "GetCompatibleVideoAnalyticsConfigurations":
            return response([])
        default:
            if let node = try configurations(call, response) { return node }
            return try profiles(call, response)
        }
    }

    private func stream(_ call: Call) throws(SOAPFault) -> StreamFacts {
        try MediaNodes.stream(call, made.withLock { $0 }, call.token("ProfileToken"))
    }

    private func address(_ text: String) -> XMLNode {
        XMLNode(
            "trt:MediaUri", [],
            [
                XMLNode("tt:Uri", text), XMLNode("tt:InvalidAfterConnect", false),
                XMLNode("tt:InvalidAfterReboot", false), XMLNode("tt:Timeout", "PT0S"),
            ])
    }

    private func configurations(
        _ call: Call, _ response: ([XMLNode]) -> XMLNode
    ) throws(SOAPFault) -> XMLNode? {
        let facts = call.facts
        let token = call.token("ConfigurationToken")
        switch call.body.name {
        case "GetVideoSourceConfigurations", "GetCompatibleVideoSourceConfigurations":
            return response(
                facts.sources.map { MediaNodes.sourceConfiguration(facts, $0, as: "trt:Configurations") })
        case "GetVideoSourceConfiguration":
            guard let source = facts.sources.first(where: { $0.source == token }) else {
                throw .noConfiguration(token)
            }
            return response([MediaNodes.sourceConfiguration(facts, source, as: "trt:Configuration")])
        case "GetVideoSourceConfigurationOptions":
            guard let source = facts.sources.first(where: { token.isEmpty || $0.source == token }) else {
                throw .noConfiguration(token)
            }
            return response([Self.sourceOptions(facts, source)])
        case "GetVideoEncoderConfigurations", "GetCompatibleVideoEncoderConfigurations":
            return response(
                facts.streams.filter { $0.codec == .h264 }.map { Self.encoder($0, as: "trt:Configurations") })
        case "GetVideoEncoderConfiguration":
            guard let stream = facts.stream(token), stream.codec == .h264 else { throw .noConfiguration(token) }
            return response([Self.encoder(stream, as: "trt:Configuration")])
        case "GetVideoEncoderConfigurationOptions":
            let name = token.isEmpty ? call.token("ProfileToken") : token
            guard let stream = facts.streams.first(where: { $0.codec == .h264 && (name.isEmpty || $0.id == name) })
            else { throw .noConfiguration(name) }
            return response([Self.encoderOptions(stream)])
        case "GetGuaranteedNumberOfVideoEncoderInstances":
            let count = facts.streams.filter { $0.codec == .h264 && (token.isEmpty || $0.source == token) }.count
            return response([XMLNode("trt:TotalNumber", count), XMLNode("trt:H264", count)])
        default: return nil
        }
    }

    /// What makes and changes profiles of clients.
    private func profiles(_ call: Call, _ response: ([XMLNode]) -> XMLNode) throws(SOAPFault) -> XMLNode? {
        let facts = call.facts
        let (profile, configuration) = (call.token("ProfileToken"), call.token("ConfigurationToken"))
        func change(_ change: (inout MadeProfiles.Profile) -> Void) throws(SOAPFault) -> XMLNode {
            if facts.stream(profile) != nil {
                throw .sender("ter:Action", "ter:FixedProfile", reason: "This profile is a stream of the chain.")
            }
            var all = made.withLock { $0 }
            try all.change(profile, change)
            made.withLock { $0 = all }
            return response([])
        }
        switch call.body.name {
        case "CreateProfile":
            let (name, token) = (call.token("Name"), call.body["Token"]?.value)
            if let token, facts.stream(token) != nil {
                throw .sender("ter:InvalidArgVal", "ter:ProfileExists", reason: "There is a profile of that token.")
            }
            var all = made.withLock { $0 }
            let new = try all.make(name: name, token: token)
            made.withLock { $0 = all }
            return response([self.profile(facts, new, as: "trt:Profile")])
        case "DeleteProfile":
            if facts.stream(profile) != nil {
                throw .sender("ter:Action", "ter:DeletionOfFixedProfile", reason: "This profile is a stream.")
            }
            var all = made.withLock { $0 }
            try all.delete(profile)
            made.withLock { $0 = all }
            return response([])
        case "AddVideoSourceConfiguration":
            guard facts.sources.contains(where: { $0.source == configuration }) else {
                throw .noConfiguration(configuration)
            }
            return try change { $0.source = configuration }
        case "AddVideoEncoderConfiguration":
            guard facts.stream(configuration) != nil else { throw .noConfiguration(configuration) }
            return try change { $0.encoder = configuration }
        case "RemoveVideoSourceConfiguration": return try change { $0.source = nil }
        case "RemoveVideoEncoderConfiguration": return try change { $0.encoder = nil }
        default: return nil
        }
    }
}

extension MediaService {
    private func profile(_ facts: DeviceFacts, _ stream: StreamFacts, as name: String) -> XMLNode {
        let source = facts.sources.first { $0.source == stream.source } ?? stream
        return XMLNode(
            name, [("token", stream.id), ("fixed", "true")],
            [
                XMLNode("tt:Name", stream.id),
                MediaNodes.sourceConfiguration(facts, source, as: "tt:VideoSourceConfiguration"),
            ] + (stream.codec == .h264 ? [Self.encoder(stream, as: "tt:VideoEncoderConfiguration")] : []))
    }

    private func profile(_ facts: DeviceFacts, _ made: MadeProfiles.Profile, as name: String) -> XMLNode {
        var children = [XMLNode("tt:Name", made.name)]
        if let source = facts.sources.first(where: { $0.source == made.source }) {
            children.append(MediaNodes.sourceConfiguration(facts, source, as: "tt:VideoSourceConfiguration"))
        }
        if let stream = made.encoder.flatMap({ facts.stream($0) }), stream.codec == .h264 {
            children.append(Self.encoder(stream, as: "tt:VideoEncoderConfiguration"))
        }
        return XMLNode(name, [("token", made.token), ("fixed", "false")], children)
    }

    static func encoder(_ stream: StreamFacts, as name: String) -> XMLNode {
        XMLNode(
            name, [("token", stream.id)],
            [
                XMLNode("tt:Name", stream.id), XMLNode("tt:UseCount", 1), XMLNode("tt:Encoding", "H264"),
                MediaNodes.resolution(stream), XMLNode("tt:Quality", "1"),
                XMLNode(
                    "tt:RateControl", [],
                    [
                        XMLNode("tt:FrameRateLimit", stream.wholeRate), XMLNode("tt:EncodingInterval", 1),
                        XMLNode("tt:BitrateLimit", stream.bitrateKbps ?? 0),
                    ]),
                XMLNode(
                    "tt:H264", [],
                    [
                        XMLNode("tt:GovLength", stream.groupLength ?? max(stream.wholeRate, 1)),
                        XMLNode("tt:H264Profile", MediaNodes.h264Profile(stream)),
                    ]),
                MediaNodes.multicast, XMLNode("tt:SessionTimeout", "PT60S"),
            ])
    }

    private static func range(_ name: String, _ value: Int) -> XMLNode {
        XMLNode(name, [], [XMLNode("tt:Min", value), XMLNode("tt:Max", value)])
    }

    /// Only what it is: the chain file sets it.
    private static func encoderOptions(_ stream: StreamFacts) -> XMLNode {
        XMLNode(
            "trt:Options", [],
            [
                range("tt:QualityRange", 1),
                XMLNode(
                    "tt:H264", [],
                    [
                        MediaNodes.resolution(stream, as: "tt:ResolutionsAvailable"),
                        range("tt:GovLengthRange", stream.groupLength ?? max(stream.wholeRate, 1)),
                        range("tt:FrameRateRange", stream.wholeRate), range("tt:EncodingIntervalRange", 1),
                        XMLNode("tt:H264ProfilesSupported", MediaNodes.h264Profile(stream)),
                    ]),
            ])
    }

    private static func sourceOptions(_ facts: DeviceFacts, _ source: StreamFacts) -> XMLNode {
        XMLNode(
            "trt:Options", [],
            [
                XMLNode(
                    "tt:BoundsRange", [],
                    [
                        range("tt:XRange", 0), range("tt:YRange", 0), range("tt:WidthRange", source.width),
                        range("tt:HeightRange", source.height),
                    ])
            ] + facts.sources.map { XMLNode("tt:VideoSourceTokensAvailable", $0.source) })
    }
}
