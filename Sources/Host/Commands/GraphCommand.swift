// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FrameCore
import FrameSupport
import Glibc
import Rates

/// `framehost graph CHAIN|URL`: a chain as a picture.
struct GraphCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "graph", abstract: "Draws a chain as a graph: stages, formats, threads, queues and budgets.",
        discussion: """
            Draws a chain file, or a running chain with its figures when given the address of its control server. DOT is text that Graphviz \
            draws. SVG needs Graphviz's program `dot`. Exit status: 0 drawn, 1 not drawn, 2 the command line or the chain is wrong.
            """)

    enum Format: String, ExpressibleByArgument, CaseIterable { case dot, svg }

    @Argument(
        help: ArgumentHelp("The chain file, or the server's address, such as 127.0.0.1:8080.", valueName: "chain"),
        completion: .file(extensions: ["json"]))
    var chain: String

    @ArgumentParser.Option(help: "dot or svg. Default: by the file's ending, or dot.")
    var format: Format?

    @ArgumentParser.Option(
        name: .shortAndLong, help: ArgumentHelp("The file to write. Default: standard output.", valueName: "file"),
        completion: .file())
    var output: String?

    @Flag(help: "Replace an existing file.")
    var overwrite = false

    @ArgumentParser.Option(
        name: .customLong("set"),
        help: ArgumentHelp(
            "Set an option of the chain file to another value. Repeatable.", valueName: "stage.option=value"))
    var settings: [String] = []

    @ArgumentParser.Option(
        parsing: .unconditional,
        help: ArgumentHelp("For a running chain: how long figures are collected. Default: 1.", valueName: "seconds"),
        transform: NumberOption.seconds(0.1...60, example: 5))
    var interval: Double = 1

    @ArgumentParser.Option(
        name: .customLong("token-file"),
        help: ArgumentHelp(
            "For a running chain: a file with the server's token. Without it, $FRAMEHOST_LOGIN has name:password, or $FRAMEHOST_TOKEN the token.",
            valueName: "file")
    )
    var tokenFile: String?

    @OptionGroup var plugins: PluginOptions

    func run() throws {
        let form: Format
        let dot: String
        do {
            form = try wantedFormat
            dot = try isAddress ? ofRunningChain() : ofChainFile()
        } catch let end as ExitCode {
            throw end
        } catch {
            throw report(error)
        }
        do {
            try write(form == .dot ? Array(dot.utf8) : Graphviz.svg(dot))
        } catch {
            _ = report(error)
            throw ExitCode(1)
        }
    }

    /// The format that was asked for, or else that of the file's ending.
    private var wantedFormat: Format {
        get throws {
            if let format { return format }
            guard let output else { return .dot }
            let ending = output.split(separator: ".").last.map { $0.lowercased() } ?? ""
            switch ending {
            case "svg": return .svg
            case "dot", "gv": return .dot
            default:
                throw FrameHostError(
                    .invalidConfiguration, place: "--output", what: "'\(output)' must end in .svg, .dot or .gv",
                    remedy: "Name such a file, or set the format with --format.")
            }
        }
    }

    // MARK: Where the plan comes from

    /// Whether `chain` is a web address, or `HOST:PORT` where no file has that name.
    private var isAddress: Bool {
        if chain.hasPrefix("http://") || chain.hasPrefix("https://") { return true }
        guard access(chain, F_OK) != 0, !chain.contains("/"), let colon = chain.lastIndex(of: ":") else { return false }
        let port = chain[chain.index(after: colon)...]
        return colon > chain.startIndex && Int(port).map { (1...65535).contains($0) } ?? false
    }

    private func ofChainFile() throws -> String {
        if tokenFile != nil {
            throw FrameHostError(
                .invalidConfiguration, place: "--token-file", what: "is only for a running chain",
                remedy:
                    "Give the address of the chain's control server instead of '\(chain)', or leave --token-file out.")
        }
        do {
            let request = try ChainFile.load(chain, registry: plugins.registry(), settings: settings)
            let plan = try PlanLook(PlanText(Chain.plan(request)).json, from: chain)
            return ChainDrawing(plan, name: request.name).dot
        } catch {
            let sorted = (error as? FrameHostErrors).map { FrameHostErrors(ChainFile.sorted($0.errors)) }
            throw reportBeforeRun(sorted ?? error)
        }
    }

    private func ofRunningChain() throws -> String {
        guard settings.isEmpty else {
            throw FrameHostError(
                .invalidConfiguration, place: "--set", what: "is only for a chain file",
                remedy: "Leave --set out, or change the running chain with `framehost ctl \(chain) set …`.")
        }
        let client: ControlClient
        do { client = try ControlClient(chain, argument: "chain", tokenFile: tokenFile) } catch {
            throw reportBeforeRun(error)
        }
        let watch = ChainWatch(client, interval: interval)
        _ = try watch.look()
        MonotonicTime.sleep(seconds: interval)
        let figures: LiveFigures
        do { figures = try watch.look() } catch {
            switch error {
            case ChainWatch.End.fault(let fault): throw fault
            default:
                throw FrameHostError(
                    .unavailable, place: client.base, what: "the chain has ended",
                    remedy: "Draw its file instead.")
            }
        }
        let plan = try PlanLook(client.json("GET", "/api/v1/plan"), from: client.base)
        return ChainDrawing(plan, name: figures.name.isEmpty ? "chain" : figures.name, figures: figures).dot
    }

    /// Writes the whole file or nothing.
    private func write(_ bytes: [UInt8]) throws {
        guard let output else { return try print(bytes) }
        if let own = FileIdentity(path: chain), own == FileIdentity(path: output) {
            throw FrameHostError(
                .invalidConfiguration, place: FaultPlace(argument: "--output"), what: "'\(output)' is the chain file",
                remedy: "Name another file.")
        }
        if let refusal = RunFiles().write(output, bytes, as: "framehost", isReplacing: overwrite) {
            throw refusal.fault(output, overwriting: "add --overwrite")
        }
    }

    /// Writes all bytes, however slowly they are read (`… | less`). A reader that has gone is not a fault.
    private func print(_ bytes: [UInt8]) throws {
        let code = Transfer.write(bytes, to: StandardOutput.descriptor)
        guard ![0, EPIPE].contains(code) else { return }
        throw FrameHostError(
            .callFailed, place: "standard output", what: "cannot be written: \(String(cString: strerror(code)))",
            remedy: code == ENOSPC
                ? "Free some space, or name a file with --output."
                : "Check where standard output goes, or name a file with --output.")
    }
}
