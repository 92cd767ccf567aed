// SPDX-License-Identifier: Apache-2.0

import FrameCore
import ServerAccess

/// Reads from a running chain what its ONVIF device is. [service thread, and the control thread in `start`]
struct FactsReader {
    /// What the chain file says of one `rtsp-sink`.
    struct Sink: Sendable, Equatable {
        var id: String
        /// Nil where the file has a variable: the sink tells its port and path when it serves.
        var port: Int?
        var path: String?
        var audience: Audience
        /// Empty for all addresses.
        var address: String
        var isSecure: Bool

        /// The address alone at which it can be reached; nil where it listens at all of them.
        var ownAddress: IPAddress? {
            guard let address = IPAddress(address), address != IPAddress(high: 0, low: 0), address != IPAddress(v4: 0)
            else { return nil }
            return address
        }
    }

    /// A stream that is no profile, and why, as words of an event.
    struct LeftOut: Sendable, Hashable {
        var stage: String
        var why: Reason

        enum Reason: String, Sendable {
            case otherUsers, noUsers, otherAllow, loopback, tooMany
        }
    }

    /// Formats of stages, for as long as the plan stays: asking for one watches the stage for a moment, and its state
    /// says so (docs/control.md).
    struct Formats: Sendable {
        fileprivate var plan: JSONNode?
        fileprivate var known: [String: EncodedFormat?] = [:]
    }

    let control: any RunControl
    /// That of all streams of the device.
    var audience: Audience
    /// Whether only programs of this machine reach the device.
    var isLoopback = false
    /// For the formats of stages. No unit finds room in it.
    let inbox: UnitInbox

    /// What the chain file says of its stages, and else the options' defaults.
    struct Options {
        private let stages: [JSONNode]
        private let kinds: JSONNode

        init(_ control: any RunControl) {
            stages = control.chain["stages"]?.asArray ?? []
            kinds = control.kinds
        }

        func value(_ option: String, of stage: ChainGraph.Stage) -> JSONNode? {
            // A stage without an id has that of its type.
            let node =
                stages.first { $0["id"]?.asString == stage.id }
                ?? stages.first { $0["id"] == nil && $0["use"]?.asString == stage.use }
            if let value = node?[option] { return value }
            return kinds[stage.use]?["options"]?.asArray?.first { $0["name"]?.asString == option }?["default"]
        }
    }

    /// The sinks of the chain as its file has them.
    static func sinks(_ options: Options, _ graph: ChainGraph) -> [Sink] {
        graph.stages(using: "rtsp-sink").map { stage in
            let port = options.value("port", of: stage)?.asInt.flatMap { (1...65_535).contains($0) ? $0 : nil }
            let path = options.value("path", of: stage)?.asString.flatMap { $0.hasPrefix("/") ? $0 : nil }
            return Sink(
                id: stage.id, port: port, path: path,
                audience: Audience(
                    users: options.value("users", of: stage)?.asString,
                    allow: options.value("allow", of: stage)?.asArray?.map { $0.asString ?? "" } ?? []),
                address: options.value("address", of: stage)?.asString ?? "",
                isSecure: options.value("certificate", of: stage)?.asString != nil)
        }
    }

    /// - Parameter serving: Ports and paths that sinks have told of, which are those after `--set` and variables.
    func read(
        into facts: inout DeviceFacts, serving: [String: (port: Int, path: String)], formats: inout Formats
    ) -> Set<LeftOut> {
        let (plan, options) = (control.plan, Options(control))
        let graph = ChainGraph(plan)
        if formats.plan != plan || facts.streams.isEmpty { formats = Formats(plan: plan) }
        var left: Set<LeftOut> = []
        var streams: [StreamFacts] = []
        for sink in Self.sinks(options, graph) {
            if let why = why(sink) {
                left.insert(LeftOut(stage: sink.id, why: why))
                continue
            }
            guard let stream = stream(sink, serving[sink.id], graph, options, &formats) else { continue }
            guard streams.count < DeviceFacts.mostStreams else {
                left.insert(LeftOut(stage: sink.id, why: .tooMany))
                continue
            }
            streams.append(stream)
        }
        // Equal sizes stay in the order of the chain.
        facts.streams = streams.enumerated().sorted { one, other in
            let (a, b) = (one.element.width * one.element.height, other.element.width * other.element.height)
            return (-a, one.offset) < (-b, other.offset)
        }.map(\.element)
        facts.audience = audience
        facts.motionStages = stages("motion-detect", graph)
        facts.faceStages = stages("face-effect", graph)
        return left
    }

    /// Why a sink's stream is no profile; nil where it is one.
    private func why(_ sink: Sink) -> LeftOut.Reason? {
        guard sink.audience.users == audience.users else { return sink.audience.users == nil ? .noUsers : .otherUsers }
        guard sink.audience.allow == audience.allow else { return .otherAllow }
        return !isLoopback && sink.ownAddress?.isLoopback ?? false ? .loopback : nil
    }

    private func stages(_ use: String, _ graph: ChainGraph) -> [String: String] {
        Dictionary(graph.stages(using: use).map { ($0.id, graph.source(of: $0.id)) }) { one, _ in one }
    }

    private func stream(
        _ sink: Sink, _ serving: (port: Int, path: String)?, _ graph: ChainGraph, _ options: Options,
        _ formats: inout Formats
    ) -> StreamFacts? {
        guard let port = serving?.port ?? sink.port, let path = serving?.path ?? sink.path else { return nil }
        for stage in graph.inputs(of: sink.id) {
            guard let format = format(of: stage, &formats), let video = format.video,
                format.codec == .h264 || format.codec == .h265
            else { continue }
            let encoder = graph.stages.first { $0.id == stage }
            func number(_ option: String) -> Double? {
                encoder.flatMap { options.value(option, of: $0)?.asDouble }.flatMap {
                    (0...1e6).contains($0) ? $0 : nil
                }
            }
            var facts = StreamFacts(
                id: sink.id, port: port, path: path,
                isSecure: sink.isSecure, codec: format.codec, width: video.width, height: video.height,
                rate: video.frameRate, bitrateKbps: number("bitrateKbps").map { Int($0) } ?? format.bitrateKbps,
                unitStage: stage, source: graph.source(of: stage))
            facts.host = sink.ownAddress.map { $0.isIPv4 ? "\($0)" : "[\($0)]" }
            facts.codecProfile = Self.profile(format)
            if let seconds = number("keyframeSeconds"), facts.wholeRate > 0 {
                facts.groupLength = max(Int((seconds * Double(facts.wholeRate)).rounded()), 1)
            }
            facts.pictureStage = pictures(before: stage, graph, &formats)
            return facts
        }
        return nil
    }

    /// The stage whose pictures become these units; nil where no stage of this chain encodes them, and where its
    /// pictures are originals.
    private func pictures(before units: String, _ graph: ChainGraph, _ formats: inout Formats) -> String? {
        var stage = units
        for _ in 0..<graph.stages.count {
            guard let before = graph.inputs(of: stage).first else { return nil }
            if format(of: before, &formats) == nil { return control.showsOriginals(before) ? nil : before }
            stage = before
        }
        return nil
    }

    /// Nil for a stage that gives no encoded pictures.
    private func format(of stage: String, _ formats: inout Formats) -> EncodedFormat? {
        if let known = formats.known[stage] { return known }
        let format = try? control.watchUnits(of: stage, for: inbox)
        if format != nil { control.unwatchUnits(of: stage, for: inbox) }
        formats.known.updateValue(format, forKey: stage)
        return format
    }

    /// profile_idc of the first sequence parameter set (H.264, 7.3.2.1.1), or general_profile_idc (H.265, 7.3.3); 0
    /// where there is none yet.
    static func profile(_ format: EncodedFormat) -> Int {
        let bytes = format.parameterSets
        var index = 0
        while index + 6 < bytes.count {
            defer { index += 1 }
            guard bytes[index] == 0, bytes[index + 1] == 0, bytes[index + 2] == 1 else { continue }
            let header = bytes[index + 3]
            if format.codec == .h264, header & 31 == 7 { return Int(bytes[index + 4]) }
            // Two bytes of header, then one with ids and layers.
            if format.codec == .h265, header >> 1 & 63 == 33 { return Int(bytes[index + 6] & 31) }
        }
        return 0
    }
}
