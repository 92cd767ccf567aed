// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FrameCore

/// `framehost latency rtsp://…`: how old the pictures of a stream are when they arrive.
struct LatencyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "latency", abstract: "Measures how old the pictures of a stream are when they arrive.",
        discussion: """
            Plays the stream without decoding it, and reads the time of capture that an encoder with "stamp": true has put before each picture. \
            The pictures of the first second are not counted: a server begins with old ones, since its last keyframe. Over RTSP a picture is \
            complete when the next one begins, so one frame's time is part of it. \
            Of two machines both clocks must agree: synchronise them (chrony, PTP). Exit status: 0 measured, 1 the stream could not be played \
            or has no such times, 2 the command line is wrong.
            """)

    @Argument(help: "The stream's address, such as rtsp://camera:8554/live: what network-source takes as its url.")
    var url: String

    @ArgumentParser.Option(name: .customLong("for"), help: ArgumentHelp("Measure for so long.", valueName: "seconds"))
    var seconds = 10.0

    @ArgumentParser.Option(
        help: ArgumentHelp(
            "A file with a line name:password, or env:NAME: what network-source takes as its login.", valueName: "file")
    )
    var login: String?

    @Flag(help: "Print the figures as JSON.")
    var json = false

    @OptionGroup var plugins: PluginOptions

    func validate() throws {
        guard (0.1...1e6).contains(seconds) else {
            throw ValidationError("--for \(seconds): must be a time from 0.1 to 1000000 s. Write for example --for 10.")
        }
    }

    private static let meter = "latency"

    func run() throws {
        let chain: Chain
        do { chain = try makeChain() } catch { throw report(error) }
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
                        ? "no picture came within \(Self.text(seconds)) s"
                        : "none of \(pictures) pictures says when it was captured",
                    remedy: pictures == 0
                        ? "Measure longer (--for), or look at the stream's keyframes."
                        : "Set \"stamp\": true at its x264-encoder."))
        }
        guard !json else { return Terminal.say(figures.text(pretty: true)) }
        func milliseconds(_ key: String) -> String { Self.text((figures[key]?.asDouble ?? 0)) }
        Terminal.say(
            "\(pictures - unstamped) pictures: p50 \(milliseconds("p50Ms")) ms, p99 \(milliseconds("p99Ms")) ms (\(milliseconds("leastMs")) to \(milliseconds("mostMs")) ms)"
        )
        if unstamped > 0 { Terminal.say("\(unstamped) further pictures do not say when they were captured.") }
    }

    /// The stream into a sink that looks at it.
    private func makeChain() throws -> Chain {
        let registry = try plugins.registry()
        func type(_ id: String) throws -> StageType {
            guard let type = try registry.stage(id) else {
                throw FrameHostError(
                    .invalidConfiguration, place: FaultPlace(id), what: "no such plugin",
                    remedy: "Install framehost's own plugins beside it, or name their folder with --plugin-path.")
            }
            return type
        }
        func member(_ key: String, _ value: JSONNode) -> JSONNode.Member { JSONNode.Member(key: key, value: value) }
        var options = [member("url", .string(url)), member("decode", JSONNode(.bool(false)))]
        if let login { options.append(member("login", .string(login))) }
        let request = ChainRequest(
            file: "latency", folder: "",
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

    private static func text(_ value: Double) -> String { Terminal.decimal(value) }
}
