// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// The note in a unit's folder that somebody has given its input up by hand.
struct GivenUpNote {
    struct Contents {
        /// The identity that the input had then; nil if the input could not be examined.
        var input: InputIdentity?
        var time: String
    }

    private let unit: String
    /// Where the note is, for people.
    let path: String

    /// - Parameter unit: The unit's folder.
    init(unit: String) {
        self.unit = unit
        path = "\(unit)/given-up"
    }

    /// - Throws: ``FrameHostError`` if the folder cannot be written.
    func write(_ inputPath: String?, _ input: InputIdentity?) throws {
        // A symbolic link here would lead to another folder.
        guard BatchFiles.isFolderOrMissing(unit) else { throw BatchFiles.fault(unit, "written to", ENOTDIR) }
        try BatchFiles.makeFolders(unit)
        let words: JSONNode = .object(
            [
                ("time", .string(WallTime.text(WorkRecord.now()))), ("host", .string(WorkRecord.hostName)),
            ] + (input.map { [("input", $0.json(path: inputPath ?? ""))] } ?? []))
        try BatchFiles.replace(path, by: words.text(pretty: true) + "\n")
    }

    /// Nil if nobody has given the input up.
    var contents: Contents? {
        guard access(path, F_OK) == 0, let json = try? JSONReader.read(path: path, takesPipes: false) else {
            return nil
        }
        return Contents(
            input: json["input"].map { InputIdentity(json: $0) }, time: json["time"]?.asString ?? "an unknown time")
    }

    func remove() { unlink(path) }
}
