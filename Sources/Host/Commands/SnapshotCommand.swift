// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FrameCore
import Glibc

/// `framehost snapshot URL STAGE FILE`: the next picture of a stage of a running chain.
struct SnapshotCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "snapshot", abstract: "Writes the next picture of a running chain's stage to a file.",
        discussion:
            "Asks the chain's control server. Exit status: 0 written, 1 not written, 2 the command line is wrong.")

    @Argument(help: "The server's address, such as 127.0.0.1:8080.")
    var url: String

    @Argument(help: "The id of the stage.")
    var stage: String

    @Argument(help: "The file, whose name ends in .jpg, .jpeg or .png.", completion: .file())
    var file: String

    @ArgumentParser.Option(
        parsing: .unconditional,
        help: "Width in pixels. Default: the picture's width, or with --height the width that keeps the aspect ratio.",
        transform: NumberOption.whole(PictureForm.sides))
    var width: Int?

    @ArgumentParser.Option(
        parsing: .unconditional,
        help:
            "Height in pixels. Default: the picture's height, or with --width the height that keeps the aspect ratio.",
        transform: NumberOption.whole(PictureForm.sides))
    var height: Int?

    @ArgumentParser.Option(help: "fill: crop to width and height; contain: the whole picture on grey.")
    var fit: String?

    @ArgumentParser.Option(
        parsing: .unconditional,
        help: ArgumentHelp("Degrees to rotate clockwise: 0, 90, 180 or 270.", valueName: "degrees"),
        transform: NumberOption.one(of: PictureForm.rotations))
    var rotate: Int?

    @Flag(help: "Mirror left and right.")
    var mirror = false

    @ArgumentParser.Option(
        parsing: .unconditional, help: "JPEG quality, 1 to 100.", transform: NumberOption.whole(1...100))
    var quality: Int?

    @Flag(help: "Replace an existing file.")
    var overwrite = false

    @ArgumentParser.Option(
        name: .customLong("token-file"),
        help: ArgumentHelp(
            "A file with the server's token. Without it, $FRAMEHOST_LOGIN has name:password, or $FRAMEHOST_TOKEN the token.",
            valueName: "file"
        ))
    var tokenFile: String?

    func validate() throws {
        let words = PictureForm.Fit.allCases.map(\.rawValue)
        if let fit, !words.contains(fit) {
            throw ValidationError("--fit \(fit): must be \(wordList(words, "or")).")
        }
        guard ["jpg", "jpeg", "png"].contains(ending) else {
            throw ValidationError("\(file): the name must end in .jpg, .jpeg or .png, which sets the file's format.")
        }
    }

    func run() throws {
        do {
            let bytes = try bytes()
            try write(bytes)
            Terminal.say("Wrote \(file) (\(Terminal.bytes(bytes.count))).")
        } catch {
            let errors = (error as? FrameHostErrors)?.errors ?? [FrameHostError.wrap(error)]
            _ = report(error)
            throw ExitCode(errors.allSatisfy { $0.place.argument != nil } ? 2 : 1)
        }
    }

    private var ending: String { file.split(separator: ".").last.map { $0.lowercased() } ?? "" }

    private func bytes() throws -> [UInt8] {
        var query = ["format=\(ending == "png" ? "png" : "jpeg")"]
        for (name, value) in [("width", width), ("height", height), ("rotate", rotate), ("quality", quality)] {
            if let value { query.append("\(name)=\(value)") }
        }
        if let fit { query.append("fit=\(ControlClient.encoded(fit))") }
        if mirror { query.append("mirror=true") }
        let client = try ControlClient(url, tokenFile: tokenFile)
        let path = "/api/v1/stages/\(ControlClient.encoded(stage))/picture?\(query.joined(separator: "&"))"
        guard let bytes = try client.bytes("GET", path) else {
            throw FrameHostError(
                .unavailable, place: stage, what: "no picture came within a second",
                remedy:
                    "Try again when frames flow. If the stage gives less than one picture a second, repeat the command until one comes."
            )
        }
        guard PictureBytes.isPicture(bytes, isPNG: ending == "png") else {
            throw FrameHostError(
                .unavailable, place: client.base,
                what: "is not a control server: its answer is not a \(ending == "png" ? "PNG" : "JPEG") picture",
                remedy: "Check the address and the port.")
        }
        return bytes
    }

    /// Writes the whole file or nothing.
    private func write(_ bytes: [UInt8]) throws {
        if overwrite, let fault = PictureForm.faultOfReplacing(file) { throw fault }
        if let refusal = RunFiles().write(file, bytes, as: "framehost", isReplacing: overwrite) {
            throw refusal.fault(file, overwriting: "add --overwrite")
        }
    }
}
