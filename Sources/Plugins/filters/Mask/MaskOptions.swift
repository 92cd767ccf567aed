// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Options of `mask`.
struct MaskOptions: StageOptions {
    @Option(
        help:
            "The areas that are covered, one after the other in this order. \"areasFile\" replaces them at the start.",
        count: 0...MaskArea.most, live: true) var areas: [MaskArea] = []
    @Option(
        help:
            "A file that keeps the areas: if it exists, its areas replace 'areas' at the start; each change while the chain runs is written to it."
    ) var areasFile: String? = nil
    @Option(
        help:
            "No picture passes uncovered: the stage does not start without areas, the last one cannot be removed, a picture that cannot be covered is an error, and nothing may take a picture past the stage."
    ) var privacy = false

    func validate() throws {
        if areasFile?.isEmpty == true {
            throw OptionFault(
                "'areasFile' must name a file", remedy: "Write a file's name, or leave 'areasFile' out.",
                options: ["areasFile"])
        }
        // With a file, the areas are known when it has been read.
        if privacy, areas.isEmpty, areasFile == nil {
            throw OptionFault(
                "with \"privacy\": true at least one area must be covered", remedy: "Add an area to 'areas'.",
                options: ["areas", "privacy"])
        }
    }
}
