// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Recordings

struct ImageSinkOptions: StageOptions {
    @Option(
        help:
            "The files to write. A relative path starts at the chain file's folder. Its ending (.jpg, .jpeg, .png) chooses the format. It can contain strftime times (%Y-%m-%d) and one number ({n}, {nnnn})."
    )
    var path = ""
    @Option(
        help:
            "Replaces a file that this stage has written before: with a plain 'path', each picture takes the place of the one before, which is never half a file."
    )
    var overwrite = false
    @Option(
        help: "Writes a picture whenever this much time has passed, by PTS. Default: every picture.",
        range: 0.001...2_592_000, unit: "s", live: true)
    var everySeconds: Double? = nil
    @Option(
        help:
            "Writes only pictures that were keyframes in the file or stream. 'file-source' and 'network-source' say which were.",
        live: true)
    var keyframesOnly = false
    @Option(
        help: "Quality of JPEG files. From 90 on each pixel keeps its own chroma.", range: 1...100, live: true)
    var quality = 90
    @Option(
        help: "Removes files that this stage has written and that are older than this.", range: 0.1...3_153_600_000,
        unit: "s")
    var keepSeconds: Double? = nil
    @Option(
        help: "Removes the oldest files that this stage has written while they are together larger than this.",
        range: 0.001...1_000_000_000, unit: "MB")
    var keepMegabytes: Double? = nil

    /// The format by the ending of a file's name, in any case.
    static func kind(of path: String) -> PictureForm.Kind? {
        let name = path.lowercased()
        if name.hasSuffix(".jpg") || name.hasSuffix(".jpeg") { return .jpeg }
        return name.hasSuffix(".png") ? .png : nil
    }

    /// How a picture becomes a file.
    var form: PictureForm {
        var form = PictureForm(Self.kind(of: path) ?? .jpeg)
        form.quality = quality
        return form
    }

    func validate() throws(OptionFault) {
        try FileNamePattern.check(
            path, example: "shots/{nnnn}.jpg",
            insteadOfOutput: "Name a file. 'y4m-sink' writes raw video to standard output.",
            insteadOfAddress: "Name a file. 'rtsp-sink' serves a stream.")
        guard Self.kind(of: path) != nil else {
            throw OptionFault(
                "'\(path)' must end in .jpg, .jpeg or .png",
                remedy: "Use one of these endings: the ending chooses the format.", options: ["path"])
        }
        guard try FileNamePattern(path).isFixed else { return }
        guard overwrite else {
            throw OptionFault(
                "'\(path)' is one file, but each picture needs a file of its own",
                remedy:
                    "Put a number or a time into 'path', such as {nnnn} or %H-%M-%S. To keep only the newest picture, set \"overwrite\": true.",
                options: ["path"])
        }
        if keepSeconds != nil || keepMegabytes != nil {
            throw OptionFault(
                "'\(keepSeconds != nil ? "keepSeconds" : "keepMegabytes")' removes older files of a pattern, but '\(path)' is one file",
                remedy: "Put a time or a number into 'path', such as %Y-%m-%d or {nnnn}.",
                options: [keepSeconds != nil ? "keepSeconds" : "keepMegabytes"])
        }
    }
}
