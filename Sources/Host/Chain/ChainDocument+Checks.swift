// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// What a change may not bring, whoever asks for it.
extension ChainDocument {
    /// Checks that no program is named that the chain does not have: whoever asks for a change may be a client of the
    /// control server, and may not run what lies on this machine.
    func checkPrograms(_ root: JSONNode, file: String?) throws {
        func programs(_ root: JSONNode) -> [(use: String, place: FaultPlace)] {
            (root["stages"]?.asArray ?? []).enumerated().compactMap { index, stage in
                guard let use = stage["use"]?.asString, ProgramStages.isProgram(use) else { return nil }
                let place = FaultPlace(
                    file: file ?? path, position: stage["use"]?.place, path: "stages[\(index)].use")
                return (use, place)
            }
        }
        let known = Set(programs(present).map(\.use))
        for program in programs(root) where !known.contains(program.use) {
            throw FrameHostError(
                .invalidConfiguration, place: program.place,
                what: "'\(program.use)' is a program, which no command can add",
                remedy: "Write the stage into the chain file, and reload it.")
        }
    }

    /// Checks that the services stay as they were at the start: whoever asks for a change may be a client of one.
    func checkServices(_ root: JSONNode, file: String?) throws {
        for key in ChainFile.services.keys.sorted() where root[key]?.withoutPlaces != present[key]?.withoutPlaces {
            throw FrameHostError(
                .invalidConfiguration,
                place: FaultPlace(file: file ?? path, position: root[key]?.place ?? root.place, path: key),
                what: "cannot change while the chain runs", remedy: "Leave it unchanged, or restart the chain.")
        }
    }
}
