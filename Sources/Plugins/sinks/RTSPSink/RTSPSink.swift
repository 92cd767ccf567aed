// SPDX-License-Identifier: Apache-2.0

import CodedVideo
import FrameCore
import FrameNetwork
import ServerAccess

/// Serves H.264 or H.265, a sound (AAC, Opus, MP3, G.711, G.726), or one of each, at `rtsp://host:port/path` to any number of
/// players.
///
/// Each access unit is packed once, on the stage thread, and handed to the event loops of the readers. Nothing here
/// waits for a reader.
final class RTSPSink: MultiSink {
    static let info = StageInfo(
        id: "rtsp-sink", summary: "Serves encoded video and its sound, or sound alone, over RTSP.",
        input: .encoded(.h264, .h265, .aac, .opus, .mp3, .muLaw, .aLaw, .g726),
        furtherInputs: .encoded(.aac, .opus, .mp3, .muLaw, .aLaw, .g726), service: .unbounded,
        commands: [
            CommandInfo("readers", "Posts the event 'readers': each reader with its transport, delay and losses.")
        ], events: events)

    /// How many blocks the ring has: those that are kept for new readers, and some on their way.
    static let ringBlocks = 96
    /// RFC 3550, 6.2: not more often than every 5 s.
    static let reportInterval: Int64 = 5_000_000_000

    var options: RTSPSinkOptions
    private let context: StageContext
    /// That of the pictures, or of a sound alone.
    private var format: EncodedFormat?
    /// Nil for sound alone.
    private var sets: NALPacketizer.Sets?
    /// The input of the pictures; another one has the sound. Nil for sound alone.
    private var pictureInput: Int?
    private var sound: SoundTrack?
    private var hub: StreamHub?
    private var server: RTSPServer?
    private var pictures: PackedTrack<NALPacketizer>?
    private var sounds: PackedTrack<SoundPacketizer>?
    private var pair = SoundPair()
    private var nextIndex: UInt64 = 0
    private var soundCount: UInt64 = 0
    /// Chain clock; nil before the first unit.
    private var nextReport: Int64?
    /// The medium by which the stream's anchor was found.
    private var anchoredBy: Medium?
    private var hasReportedGroup = false

    /// [control thread] Opens nothing.
    init(options: RTSPSinkOptions, context: StageContext) {
        self.options = options
        self.context = context
    }

    /// [control thread] Reads what decoders must know before the first unit, for the description.
    func negotiate(_ inputs: [MediaFormat]) throws {
        let places = inputs.indices.filter { inputs[$0].encoded?.audio == nil }
        let sounds = inputs.indices.filter { inputs[$0].encoded?.audio != nil }
        guard places.count <= 1, sounds.count <= 1, let lead = places.first ?? sounds.first else {
            throw FrameHostError(
                .invalidConfiguration, place: "from",
                what:
                    "'from' must name at most one input with pictures and at most one with sound, but names \(places.count) with pictures and \(sounds.count) with sound",
                remedy: "Name one input with H.264 or H.265, one with AAC or Opus, or one of each.")
        }
        format = inputs[lead].encoded
        if let place = places.first { sets = try Self.sets(of: inputs[place]) }
        pictureInput = places.first
        sound = try sounds.first.flatMap { inputs[$0].encoded }.map(SoundTrack.init)
        // Credentials that cannot be read now cannot be read at the start either.
        if let users = options.users { _ = try CredentialsFile.read(users) { context.resolve($0) } }
        _ = try endpoint.tlsContext()
    }

    private static func sets(of input: MediaFormat) throws -> NALPacketizer.Sets {
        guard let format = input.encoded, format.framing == .annexB, let coding = VideoCoding(format.codec),
            let sets = NALPacketizer.sets(of: format.parameterSets, coding)
        else {
            throw FrameHostError(
                .broken,
                what:
                    "the RTSP sink needs H.264 or H.265 with start codes and parameter sets, but was offered \(input)",
                remedy: "Report this to the author of the stage before it.")
        }
        return sets
    }

    /// Whether everything since the last keyframe is kept, so that a new reader can start with that keyframe: the
    /// source makes no keyframes on request, and `joinAt` asks for it.
    private var keepsGroup: Bool {
        pictureInput != nil && context.keyframeRequest == nil && options.joinAt == .lastKeyframe
    }

    private var groupLimits: GroupStore.Limits {
        GroupStore.Limits(seconds: options.keptSeconds, megabytes: options.keptMegabytes, hasSound: sound != nil)
    }

    private var endpoint: ServerEndpoint {
        ServerEndpoint(
            port: options.port, address: options.address, certificatePath: options.certificate.map(context.resolve),
            keyPath: options.key.map(context.resolve))
    }

    /// Stages of one port share a server: each needs a path of its own, and they must agree on the rest.
    var demand: StageDemand {
        var demand = Self.declaredDemand
        if keepsGroup { demand.ownBytes = groupLimits.byteCount }
        demand.readsFiles = context.filesRead(options.users, options.certificate, options.key)
        let endpoint = endpoint
        demand.claims = [
            // TCP ports belong to the machine: the control server claims one too.
            StageDemand.Claim(
                "tcp-port \(options.port) \(["", "0.0.0.0", "::"].contains(options.address) ? "any" : options.address)",
                terms: "rtsp-sink",
                option: "port", what: "listens on port \(options.port), as does",
                remedy: "Set another 'port' for one of them."),
            StageDemand.Claim(
                "rtsp-port \(options.port)",
                terms:
                    "\(endpoint.address)|\(endpoint.certificatePath ?? "")|\(endpoint.keyPath ?? "")|\(options.sessionSeconds)|"
                    + "\(options.maxConnectionsPerAddress)",
                option: "port", what: "serves port \(options.port) with other settings than",
                remedy:
                    "Give both stages the same 'address', 'certificate', 'key', 'sessionSeconds' and 'maxConnectionsPerAddress', or give one of them another 'port'."
            ),
            StageDemand.Claim(
                "rtsp-path \(options.port) \(options.path)", option: "path",
                what: "serves port \(options.port), path '\(options.path)', as does",
                remedy: "Give each stage a 'path' or 'port' of its own."),
        ]
        return demand
    }

    /// [control thread] Listens, and says where.
    func start() throws {
        guard let format else {
            throw FrameHostError(.broken, what: "the RTSP sink was started before its format was known")
        }
        let endpoint = endpoint
        let hub = try makeHub()
        var policy = SessionPolicy(timeoutSeconds: options.sessionSeconds)
        policy.mostConnectionsPerAddress = options.maxConnectionsPerAddress
        let reports = ReaderReports(context: context, path: options.path)
        let stream = RTSPServer.Stream(hub: hub, report: reports.report)
        let server = try ServerRegistry.shared.attach(
            stream, servedPath(format, hub), endpoint, policy: policy)
        (self.hub, self.server) = (hub, server)
        makeTracks(hub)
        context.showFigures { [path = options.path] in
            reports.totals.details(
                server.readers(of: path), refusedConnections: server.refusedConnections,
                failedLogins: server.failedLogins(of: path),
                longestHold: server.longestHold, keptGroup: hub.groupFigures)
        }
        sayWhere(endpoint)
    }

    private func makeTracks(_ hub: StreamHub) {
        pictures = sets.map { sets in
            PackedTrack(
                .pictures, clock: hub.clock, pictureClock: hub.clock,
                packetizer: NALPacketizer(
                    sets, mostPacketBytes: options.packetBytes, payloadType: 96, ssrc: hub.ssrc,
                    firstSequenceNumber: .random(in: .min ... .max)),
                ring: BlockRing(count: Self.ringBlocks))
        }
        guard let sound, let track = hub.sound else { return }
        sounds = PackedTrack(
            .sound, clock: track.clock, pictureClock: hub.clock,
            packetizer: SoundPacketizer(
                sound.form, mostPacketBytes: options.packetBytes, payloadType: sound.description.payloadType,
                ssrc: track.ssrc, firstSequenceNumber: .random(in: .min ... .max)),
            ring: BlockRing(count: sound.ringBlocks, mostPackets: 8))
    }

    private func makeHub() throws -> StreamHub {
        let bitrate = (format?.bitrateKbps ?? 8000) * 125
        let limits = ReaderQueue<MediaBlock>.Limits(
            mostAge: Int64(options.queueSeconds * 1e9),
            mostBytes: max(4 << 20, Int(options.queueSeconds * 4 * Double(bitrate))),
            mostStillness: Int64(options.stuckSeconds * 1e9))
        let chainClock = context.clock
        let request = context.keyframeRequest
        let group = keepsGroup ? try GroupStore(limits: groupLimits) : nil
        let ssrc = UInt32.random(in: 1 ... .max)
        return StreamHub(
            path: options.path, ssrc: ssrc, clock: RTPClock(start: .random(in: .min ... .max)),
            sound: sound.map { sound in
                StreamHub.Track(
                    // It must differ from that of the pictures, and must not be 0.
                    ssrc: ssrc ^ 0x8000_0000 == 0 ? 1 : ssrc ^ 0x8000_0000,
                    clock: RTPClock(start: .random(in: .min ... .max), ticksPerSecond: sound.ticksPerSecond))
            },
            canonicalName: "framehost-\(UInt32.random(in: .min ... .max))", queueLimits: limits,
            group: group, requestKeyframe: { request?.raise() },
            now: { chainClock.now() }, unixTime: { chainClock.unixTime(at: $0) })
    }

    private func servedPath(_ format: EncodedFormat, _ hub: StreamHub) throws -> ServedPath {
        let rate = (format.video?.frameRate ?? Rational(0))
        var description = SessionDescription(
            sessionID: UInt64(UInt32.random(in: 1 ... .max)), address: "", name: String(options.path.dropFirst()),
            isH265: sets?.coding == .h265, vps: sets?.vps ?? [], sps: sets?.sps ?? [], pps: sets?.pps ?? [],
            bitrateKbps: format.bitrateKbps, frameRate: rate.isZero ? nil : Self.decimal(rate))
        description.hasPictures = sets != nil
        description.sound = sound?.description
        var served = ServedPath(description: description, ssrc: hub.ssrc, soundSSRC: hub.sound?.ssrc)
        if let users = options.users {
            served.challenge = Challenge(
                scheme: options.authentication ?? .digest,
                credentials: try CredentialsFile.read(users) { context.resolve($0) })
        }
        served.allowed = options.allow.compactMap(AddressRange.init)
        served.carriesUDP = options.transport != .tcp
        served.carriesTCP = options.transport != .udp
        served.mostReaders = options.maxReaders
        return served
    }

    /// `29.97`: three digits after the point at most.
    private static func decimal(_ rate: Rational) -> String {
        let thousandths = Int((rate.value * 1000).rounded())
        var text = "\(thousandths / 1000)"
        guard thousandths % 1000 != 0 else { return text }
        let fraction = String(1000 + thousandths % 1000).dropFirst()
        text += "." + fraction
        while text.hasSuffix("0") { text.removeLast() }
        return text
    }

    private func sayWhere(_ endpoint: ServerEndpoint) {
        let urls = endpoint.reachableAddresses().map { endpoint.url(host: $0, path: options.path) }
        context.post(
            "serving", text: "Readers can open \(urls.joined(separator: " or ")) now.",
            details: [
                "urls": .array(urls.map { .string($0) }), "port": .number(options.port), "path": .string(options.path),
            ])
    }

    // MARK: Access units

    /// [stage thread] Packs one access unit and hands it to the loops.
    func consume(_ input: consuming Sample, from index: Int) throws -> SinkVerdict {
        switch consume input {
        case .accessUnit(let unit): publish(unit, index == pictureInput ? .pictures : .sound)
        default: throw FrameHostError(.broken, what: "the RTSP sink was handed something that is not encoded")
        }
    }

    private func publish(_ unit: borrowing AccessUnit, _ medium: Medium) -> SinkVerdict {
        guard let hub else { return .idle }
        let isNews = setAnchor(unit, medium, hub)
        if medium == .sound, !pair.isEmpty {
            let isJoined = sounds?.join(unit, to: &pair) ?? false
            publishPair(hub)
            if isJoined { return .delivered }
        }
        // Clients synchronise the media by the reports, so they must hear of a new anchor before the units that use
        // it.
        if isNews, hub.sound != nil { nextReport = .min }
        if medium == .sound, sounds?.waits(unit.byteCount) == true {
            pair.append(unit)
            return .delivered
        }
        return publish(medium, hub) { reports in
            switch medium {
            case .pictures: pictures?.pack(unit, index: nextIndex, soundsBefore: soundCount, reports: reports)
            case .sound: sounds?.pack(unit, index: nextIndex, soundsBefore: soundCount, reports: reports)
            }
        }
    }

    /// Publishes the sound that waits in the pair.
    private func publishPair(_ hub: StreamHub) {
        _ = publish(.sound, hub) { reports in
            sounds?.pack(&pair, index: nextIndex, soundsBefore: soundCount, reports: reports)
        }
    }

    private func publish(_ medium: Medium, _ hub: StreamHub, pack: (PerMedium<[UInt8]>?) -> MediaBlock?) -> SinkVerdict
    {
        let now = context.clock.now()
        // The first interval is halved (RFC 3550, 6.2).
        let reportTime = nextReport ?? now + Self.reportInterval / 2
        let reports = now >= reportTime ? hub.senderReports() : nil
        guard let block = pack(reports) else { return .dropped(.byStage) }
        nextReport = now >= reportTime ? now + Self.reportInterval : reportTime
        nextIndex += 1
        if medium == .sound { soundCount += 1 }
        if let bound = hub.publish(block) { reportGroup(bound) }
        return .delivered
    }

    /// [stage thread]
    func drain() {
        guard let hub, !pair.isEmpty else { return }
        publishPair(hub)
    }

    /// Reports this once, since the next groups are usually as large.
    private func reportGroup(_ bound: GroupStore.Bound) {
        guard !hasReportedGroup else { return }
        hasReportedGroup = true
        let (what, remedy) =
            switch bound {
            case .seconds:
                ("more than \(options.keptSeconds) s apart", "Raise 'keptSeconds'")
            case .bytes:
                ("more than \(options.keptMegabytes) MB apart", "Raise 'keptMegabytes'")
            case .units:
                (
                    "more than \(groupLimits.mostUnits) \(sound == nil ? "pictures" : "units of pictures and sound") apart",
                    "Raise 'keptSeconds'"
                )
            }
        context.post(
            "group-too-large", level: .warning,
            text:
                "Keyframes are \(what): readers that join between them may have to wait for the next one. \(remedy), or encode with more keyframes.",
            details: ["path": .string(options.path), "bound": .string(bound.rawValue)])
    }

    /// Finds where the stream's times lie on the chain clock, at the first unit and after each gap. Both media have
    /// one timeline. The pictures set it, and sound only before the first picture; an anchor that is near stays, since a
    /// reader that is there already would play its media apart by the difference, and its wall clock would step.
    ///
    /// - Returns: Whether the anchor is new.
    private func setAnchor(_ unit: borrowing AccessUnit, _ medium: Medium, _ hub: StreamHub) -> Bool {
        switch (medium, anchoredBy) {
        case (.pictures, .pictures), (.sound, .sound): guard unit.isDiscontinuity else { return false }
        case (.sound, .pictures): return false
        case (_, nil), (.pictures, .sound): break
        }
        let isFirst = anchoredBy == nil
        anchoredBy = medium
        let captured = MediaTime(nanoseconds: unit.capturedAt == 0 ? context.clock.now() : unit.capturedAt)
        guard isFirst || !hub.isAnchored(near: captured, pts: unit.pts) else { return false }
        hub.setAnchor(captured: captured, pts: unit.pts)
        return true
    }

    /// [stage thread]
    func command(_ name: String, arguments: JSONNode) throws {
        let readers = server?.readers(of: options.path) ?? []
        context.post(
            "readers", text: "\(readers.count) \(readers.count == 1 ? "reader" : "readers") of \(options.path).",
            details: .object(
                [
                    ("path", .string(options.path)), ("readers", .array(readers.map(ReaderReports.details))),
                    ("refusedConnections", .number(server?.refusedConnections ?? 0)),
                    ("failedLogins", .number(server?.failedLogins(of: options.path) ?? 0)),
                ] + (hub?.groupFigures.map { [("keptGroup", $0)] } ?? [])))
    }

    /// [stage thread] Tells readers that the stream has ended; the last stage of a port closes its server.
    func stop() {
        guard let server, let hub else { return }
        hub.close()
        ServerRegistry.shared.detach(hub.path, from: server) { [context] in context.isStopped }
        (self.server, self.hub) = (nil, nil)
    }
}
