// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FrameCore

/// `framehost latency rtsp://…`: how old the pictures of a stream are when they arrive.
struct LatencyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "latency", abstract: "Measures how old the pictures of a stream are when they arrive.",
        discussion: """
            Plays the stream without decoding it, and reads the time of capture that an encoder with "stamp": true has put before each picture. \
            The pictures of the first second are not counted: a server first sends old ones, from its last keyframe \
            on. Over RTSP a picture is \
            complete when the next one begins, so the result includes the duration of one frame. \
            If capture and measurement are on two machines, synchronise their clocks (chrony, PTP). --control also asks the chain that gives the stream \
            how old its items were when each stage handed them on. Exit status: 0 measured, 1 the stream could not be played \
            or does not say when its pictures were captured, 2 the command line is wrong.
            """)

    @Argument(help: "The stream's address, such as rtsp://camera:8554/live, as 'url' of network-source takes it.")
    var url: String

    @ArgumentParser.Option(
        name: .customLong("for"), parsing: .unconditional,
        help: ArgumentHelp("Measure for this many seconds. Default: 10.", valueName: "seconds"),
        transform: NumberOption.seconds(0.1...1e6, example: 10))
    var seconds: Double = 10

    @ArgumentParser.Option(
        help: ArgumentHelp(
            "A file with a line name:password, or env:NAME for an environment variable with such a line.",
            valueName: "file")
    )
    var login: String?

    @Flag(
        name: .customLong("no-verify"),
        help:
            "Accept any certificate of the server, as \"verify\": false of network-source does. rtsps needs this flag.")
    var acceptsAnyCertificate = false

    @ArgumentParser.Option(
        help: ArgumentHelp(
            "Show each stage's latency too: the address of the chain's control server, such as camera:8080.",
            valueName: "address"))
    var control: String?

    @ArgumentParser.Option(
        name: .customLong("token-file"),
        help: ArgumentHelp(
            "A file with the control server's token. Without it, $FRAMEHOST_LOGIN has name:password, or $FRAMEHOST_TOKEN the token.",
            valueName: "file"))
    var tokenFile: String?

    @Flag(help: "Print the figures as JSON.")
    var json = false

    @OptionGroup var plugins: PluginOptions

    private static let meter = "latency"
    /// Stands for a file's name in places of the chain that this command makes.
    private static let file = "latency"

    func run() throws {
        let client: ControlClient?
        let chain: Chain
        do {
            client = try control.map { try ControlClient($0, argument: "--control", tokenFile: tokenFile) }
            chain = try placingFaults { try makeChain() }
        } catch { throw report(error) }
        // Asks once before the measurement, so that a fault costs no time.
        do { _ = try client.map(StageLatency.ask) } catch { throw failed(error) }
        let clock = ChainClock()
        let begin = clock.now()
        var figures = JSONNode.null
        let result = chain.run {
            guard chain.currentState == .streaming, let now = self.figures(of: chain) else { return }
            figures = now
            if Double(clock.now() - begin) >= seconds * 1e9 { chain.drain() }
        }
        guard result.isSuccess else {
            for failure in result.failures { RunLog.logger.critical("\(failure)") }
            throw ExitCode(1)
        }
        let (pictures, unstamped) = (figures["pictures"]?.asInt ?? 0, figures["unstamped"]?.asInt ?? 0)
        guard pictures > unstamped else {
            throw report(
                FrameHostError(
                    .unavailable, place: "url",
                    what: pictures == 0
                        ? "no picture was measured within \(Self.text(seconds)) s: those of the first second do not count"
                        : pictures == 1
                            ? "the only picture that came does not say when it was captured"
                            : "none of the \(pictures) pictures says when it was captured",
                    remedy: pictures == 0
                        ? "Measure longer (--for), or check with 'ffprobe' that the stream has keyframes."
                        : "Set \"stamp\": true at the x264-encoder that gives the stream: other encoders do not give this time."
                ))
        }
        let stages: [StageLatency]?
        do { stages = try client.map(StageLatency.ask) } catch { throw failed(error) }
        guard !json else {
            if let stages, let members = figures.asObject {
                figures = JSONNode(.object(members + [member("stages", .array(stages.map(\.json)))]))
            }
            return Terminal.say(figures.text(pretty: true))
        }
        func milliseconds(_ key: String) -> String { Self.text((figures[key]?.asDouble ?? 0)) }
        let stamped = pictures - unstamped
        Terminal.say(
            "\(stamped) \(stamped == 1 ? "picture" : "pictures"): p50 \(milliseconds("p50Ms")) ms, p99 \(milliseconds("p99Ms")) ms (\(milliseconds("leastMs")) to \(milliseconds("mostMs")) ms)"
        )
        if unstamped == 1 { Terminal.say("1 further picture does not say when it was captured.") }
        if unstamped > 1 { Terminal.say("\(unstamped) further pictures do not say when they were captured.") }
        guard let stages else { return }
        Terminal.say("Age of the items when each stage handed them on, over the whole run so far:")
        let width = stages.map { TerminalText.width($0.id) }.max() ?? 0
        for stage in stages {
            let id = TerminalText.padded(stage.id, to: width, isRight: false)
            Terminal.say("  \(id)  p50 \(Self.text(stage.p50)) ms, p99 \(Self.text(stage.p99)) ms  \(stage.use)")
        }
    }

    /// Gives each fault of the chain that this command makes the place of an argument: nobody has seen that chain.
    private func placingFaults<Result>(_ body: () throws -> Result) throws -> Result {
        do { return try body() } catch {
            let faults = (error as? FrameHostErrors)?.errors ?? [FrameHostError.wrap(error)]
            throw FrameHostErrors(
                faults.map { fault in
                    guard fault.place.file == Self.file else { return fault }
                    let argument = fault.option == "login" ? "--login" : "url"
                    var fault = fault
                    fault.place = FaultPlace(argument: argument, words: fault.place.words)
                    return fault
                })
        }
    }

    /// Status 1 rather than that of a wrong command line.
    private func failed(_ error: any Error) -> ExitCode {
        _ = report(error)
        return ExitCode(1)
    }

    /// A chain of the stream and a sink that measures it.
    private func makeChain() throws -> Chain {
        let registry = try plugins.registry()
        func type(_ id: String) throws -> StageType {
            guard let type = try registry.stage(id) else {
                throw FrameHostError(
                    .invalidConfiguration, what: "no plugin has the stage type '\(id)'",
                    remedy:
                        "Install framehost's own plugins in the folder of the program, or name their folder with --plugin-path."
                )
            }
            return type
        }
        if !acceptsAnyCertificate, url.lowercased().hasPrefix("rtsps:") {
            throw FrameHostError(
                .invalidConfiguration, place: "url",
                what: "the address is rtsps, but the certificate of an RTSP server cannot be verified",
                remedy: "If you trust the network, add --no-verify, which accepts any certificate.")
        }
        var options = [member("url", .string(url)), member("decode", JSONNode(.bool(false)))]
        if acceptsAnyCertificate { options.append(member("verify", JSONNode(.bool(false)))) }
        if let login { options.append(member("login", .string(login))) }
        let request = ChainRequest(
            file: Self.file, folder: "",
            stages: [
                StageRequest(id: "stream", type: try type("network-source"), options: options, from: [], fileIndex: 0),
                StageRequest(
                    id: Self.meter, type: try type("null-sink"), options: [member("report", .string("stream"))],
                    from: [0], fileIndex: 1),
            ])
        return try Chain(request)
    }

    private func figures(of chain: Chain) -> JSONNode? {
        chain.figures["stages"]?.asArray?.first { $0["id"]?.asString == Self.meter }?["figures"]
    }

    private func member(_ key: String, _ value: JSONNode) -> JSONNode.Member { JSONNode.Member(key: key, value: value) }

    private static func text(_ value: Double) -> String { Terminal.decimal(value) }
}

/// The age of a stage's items when it handed them on, from the figures of its chain; milliseconds.
private struct StageLatency {
    var id: String
    var use: String
    var p50: Double
    var p99: Double

    /// The latency of each stage that has handed something on, in the order of the chain.
    static func ask(_ client: ControlClient) throws -> [StageLatency] {
        guard let stages = try client.json("GET", "/api/v1/figures")["stages"]?.asArray else {
            throw FrameHostError(
                .unavailable, place: FaultPlace(client.base), what: "is not a control server",
                remedy: "Check the address and the port.")
        }
        return stages.prefix(PlanLook.most).compactMap { stage in
            guard let p50 = stage["latencyP50Us"]?.asDouble, let p99 = stage["latencyP99Us"]?.asDouble else {
                return nil
            }
            func text(_ key: String) -> String { TerminalText.clean(String((stage[key]?.asString ?? "").prefix(256))) }
            return StageLatency(id: text("id"), use: text("use"), p50: p50 / 1000, p99: p99 / 1000)
        }
    }

    var json: JSONNode {
        [
            "id": .string(id), "use": .string(use), "p50Ms": .number(p50), "p99Ms": .number(p99),
        ]
    }
}
