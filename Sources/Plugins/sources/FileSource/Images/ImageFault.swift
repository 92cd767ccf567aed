// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Why pictures cannot be shown, as sentences.
enum ImageFault {
    static func missing(_ path: String, _ code: Int32, isRelative: Bool) -> FrameHostError {
        guard code == ENOENT || code == ENOTDIR else { return FileFault.unreadable(path, code) }
        if let pattern = patternOfFormat(path) {
            return FrameHostError(
                .unavailable, place: "path", what: "'\(path)' does not exist",
                remedy: "Write a pattern for numbered files: \"\(pattern)\".")
        }
        if let fault = FileFault.brokenLink(path) { return fault.within("path") }
        return FrameHostError(
            .unavailable, place: "path", what: "'\(path)' does not exist",
            remedy: isRelative
                ? "Correct 'path'. A relative path starts at the chain file's folder." : "Correct 'path'.")
    }

    /// `img*.png` for `img%03d.png`, where a path has a number as ffmpeg and GStreamer write it; nil for other paths.
    private static func patternOfFormat(_ path: String) -> String? {
        guard let percent = path.firstIndex(of: "%") else { return nil }
        let rest = path[path.index(after: percent)...]
        let behind = rest.drop { $0.isNumber }
        return behind.first == "d" ? path[..<percent] + "*" + behind.dropFirst() : nil
    }

    static func emptyFolder(_ path: String) -> FrameHostError {
        FrameHostError(
            .unavailable, place: "path", what: "the folder '\(path)' contains no picture",
            remedy: "Put pictures there. For names with unusual extensions, write a pattern, such as \"shots/*.img\".")
    }

    /// - Parameter names: As `ImageList` shows them.
    static func noUTF8(_ names: [String]) -> FrameHostError {
        let listed = names.sorted().prefix(5).map { "'\($0)'" }.joined(separator: ", ")
        let further = names.count > 5 ? " and \(names.count - 5) more" : ""
        return FrameHostError(
            .unavailable, place: "path",
            what:
                "\(names.count == 1 ? "the name of a picture is" : "the names of \(names.count) pictures are") not valid UTF-8: \(listed)\(further)",
            remedy: "Rename \(names.count == 1 ? "it" : "them"): `convmv -f latin1 -t utf8 --notest FILE…`.")
    }

    /// For one picture among others. Its name is written before this text.
    static func nameIsNotUTF8() -> FrameHostError {
        FrameHostError(
            .unavailable, what: "its name is not valid UTF-8",
            remedy: "Rename it: `convmv -f latin1 -t utf8 --notest FILE`.")
    }

    static func noMatch(_ path: String) -> FrameHostError {
        FrameHostError(
            .unavailable, place: "path", what: "no file matches '\(path)'",
            remedy: "Correct 'path', and check that this user may read its folders.")
    }

    static func unreadablePattern(_ path: String) -> FrameHostError {
        FrameHostError(
            .unavailable, place: "path", what: "there is not enough memory to list the files that match '\(path)'",
            remedy: "Free some memory, or use a pattern that fewer files match.")
    }

    static func tooMany(_ path: String, _ most: Int) -> FrameHostError {
        FrameHostError(
            .invalidConfiguration, place: "path", what: "'\(path)' has more than \(most) pictures",
            remedy: "Use a pattern that fewer files match.")
    }

    static func noPicture(_ path: String, cause: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia, what: "'\(path)' is not a picture that libavcodec can read",
            remedy: "Check it with 'ffprobe': it may be damaged, or larger than libavcodec reads.", cause: cause,
            option: "path")
    }

    static func damaged(_ path: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia, what: "'\(path)' is damaged: not all of the picture can be decoded",
            remedy: "Copy or create it again.", option: "path")
    }

    /// - Parameter tracks: The tracks that there are instead: `audio (mp3)`.
    static func onlyOtherTracks(_ path: String, tracks: [String]) -> FrameHostError {
        FrameHostError(
            .invalidMedia,
            what: "'\(path)' contains no picture" + (tracks.isEmpty ? "" : ", only " + tracks.joined(separator: ", ")),
            remedy: "Name only files that contain a picture.", option: "path")
    }

    static func noDecoder(_ path: String, codec: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia,
            what: codec == "none"
                ? "the picture in '\(path)' has a codec that this libavcodec does not know"
                : "the picture in '\(path)' is \(codec), which this libavcodec cannot decode",
            remedy: "Convert it to PNG or JPEG first.", option: "path")
    }

    /// - Parameters:
    ///   - tried: How many pictures were opened.
    ///   - count: How many pictures the list has.
    static func noneReadable(_ path: String, tried: Int, of count: Int, first: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia, place: "path",
            what: count == 1
                ? "the only picture of '\(path)' cannot be read"
                : "none of the \(tried < count ? "first " : "")\(tried) pictures of '\(path)' can be read",
            remedy: "Check \(count == 1 ? "it" : "one of them") with 'ffprobe'.", cause: first)
    }

    static func tooLarge(_ path: String, pixels: Int, most: Int) -> FrameHostError {
        FrameHostError(
            .exhausted,
            what: "'\(path)' has \(pixels) pixels, but memory is reserved for pictures of at most \(most) pixels",
            remedy:
                "Scale it down, or restart the chain with this picture among the first \(ImageMeasures.most): the largest of those sets the limit.",
            option: "path"
        )
    }

    /// The fault at the end of a run.
    static func leftOut(_ names: [String], count: Int) -> FrameHostError {
        let listed = names.map { "'\($0)'" }.joined(separator: ", ")
        let further = count > names.count ? " and \(count - names.count) more" : ""
        return FrameHostError(
            .invalidMedia,
            what:
                "\(count == 1 ? "1 picture" : "\(count) pictures") could not be shown and \(count == 1 ? "was" : "were") left out: \(listed)\(further)",
            remedy: "Read the warnings about these pictures (event 'picture-damaged'), which say why.")
    }

    /// - Parameter isOne: Whether the path names a picture, not a folder or a pattern.
    static func nothingShown(_ path: String, isOne: Bool) -> FrameHostError {
        FrameHostError(
            .invalidMedia,
            what: isOne
                ? "the picture '\(path)' could not be shown" : "none of the pictures of '\(path)' could be shown",
            remedy: isOne
                ? "Read the warning about it (event 'picture-damaged'), which says why."
                : "Read the warnings about them (event 'picture-damaged'), which say why.", option: "path")
    }
}
