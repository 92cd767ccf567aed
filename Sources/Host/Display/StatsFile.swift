// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// The file of `--stats`: figures of an earlier run, of one chain or of several, are replaced, anything else is kept.
enum StatsFile {
    /// More than the figures of any chain need.
    static let mostBytes = 64 << 20

    /// Writes the figures of a run that has ended.
    ///
    /// - Returns: Why they could not be written; nil where they were. The file may have appeared during the run.
    static func write(_ figures: JSONNode, to path: String, _ files: RunFiles) -> FrameHostError? {
        if let fault = fault(ofReplacing: path) { return fault }
        guard var fault = files.write(path, figures.text(pretty: true) + "\n", as: "--stats")?.fault(path) else {
            return nil
        }
        fault.place = FaultPlace(argument: "--stats")
        return fault
    }

    /// Why the file is not replaced; nil where it is not there, is empty, or has figures of an earlier run.
    static func fault(ofReplacing path: String) -> FrameHostError? {
        // What is written to standard output goes behind what is there.
        if StandardStream.output.paths.contains(path) { return nil }
        var status = stat()
        // Devices and pipes are written into.
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size > 0 else {
            return nil
        }
        if status.st_size <= mostBytes, let root = try? JSONReader.read(path: path, takesPipes: false),
            ["stages", "links", "pools", "ledger"].allSatisfy({ root[$0] != nil })
                || root["chains"]?.asArray?.allSatisfy({ $0["chain"] != nil && $0["status"] != nil }) == true
        {
            return nil
        }
        return FrameHostError(
            .invalidConfiguration, place: FaultPlace(argument: "--stats"),
            what: "'\(path)' exists and has no figures of an earlier run, so it is kept",
            remedy: "Name another file, or remove this one.")
    }
}
