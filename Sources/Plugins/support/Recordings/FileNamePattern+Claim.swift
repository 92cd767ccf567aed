// SPDX-License-Identifier: Apache-2.0

import FrameCore

extension FileNamePattern {
    /// The names of the pattern, of which a stage has a folder's alone: the files of two stages would have one row of
    /// numbers or times, and nothing would tell whose is whose.
    package var claim: StageDemand.Claim {
        let place = FileIdentity(path: folder).map { "\($0.device):\($0.inode)" } ?? folder
        return StageDemand.Claim(
            "file-names \(place) \(text)", option: "path",
            what: "names its files '\(text)' in the same folder, as does",
            remedy:
                "Put something of its own into the 'path' of each, such as a camera's name: otherwise nothing tells whose file is whose."
        )
    }

    /// The pattern without the folders before it, as one writes it.
    private var text: String {
        let parts = components.map { part in
            part.map { piece in
                switch piece {
                case .text(let bytes): String(decoding: bytes, as: UTF8.self).replacing("%", with: "%%")
                case .time(let letter): "%\(Character(UnicodeScalar(letter)))"
                case .number(let digits): "{\(String(repeating: "n", count: digits))}"
                }
            }.joined()
        }
        return parts.joined(separator: "/") + ending
    }
}
