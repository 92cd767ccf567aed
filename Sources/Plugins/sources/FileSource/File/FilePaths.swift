// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// One file, or several that are played one after the other: `"a.mp4"` or `["a.mp4", "b.mp4"]`.
struct FilePaths: OptionValue, Equatable, ExpressibleByStringLiteral {
    /// The most files of a list: each stays open.
    static let most = 100

    /// At least one.
    var all: [String]
    /// Whether it was written as a list.
    var isList: Bool

    init(stringLiteral path: String) { (all, isList) = ([path], false) }
    init(_ path: String) { (all, isList) = ([path], false) }

    /// The first, or only, file.
    var first: String { all[0] }

    /// Where a file is named, for faults.
    func place(_ index: Int) -> FaultPlace { FaultPlace(isList ? "path[\(index)]" : "path") }

    static func decodeOption(_ node: JSONNode) throws(OptionFault) -> FilePaths {
        guard node.asArray != nil else {
            guard let path = node.asString else {
                throw OptionFault(
                    "expected a path or a list of paths, found \(node.text())", remedy: "Put the path in double quotes."
                )
            }
            return FilePaths(path)
        }
        let paths = try [String].decodeOption(node)
        guard (1...most).contains(paths.count) else {
            throw OptionFault(
                "a list of files must have from 1 to \(most), but has \(paths.count)",
                remedy: paths.isEmpty
                    ? "Name the files to play." : "Join some of them first, or play them in several runs.")
        }
        var result = FilePaths(paths[0])
        (result.all, result.isList) = (paths, true)
        return result
    }

    var optionJSON: JSONNode { isList ? all.optionJSON : first.optionJSON }
    static var optionTypeName: String { "path or list of paths" }
    static var optionSchema: JSONNode {
        [
            "anyOf": [
                ["type": "string"],
                ["type": "array", "items": ["type": "string"], "minItems": 1, "maxItems": .number(most)],
            ]
        ]
    }
}
