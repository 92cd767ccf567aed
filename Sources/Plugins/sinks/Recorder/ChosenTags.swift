// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// What the recordings of a run say about themselves, chosen anew where a stage before the recorder is replaced.
struct ChosenTags {
    private(set) var tags = RecordedTags()
    /// What the inputs said about themselves then.
    private var inputTags: [PassedTags]?

    /// Chooses where the inputs say something else than before.
    mutating func choose(
        _ inputs: RecorderInputs, _ options: RecorderOptions, _ container: Container, _ context: StageContext
    ) {
        let isAgain = inputTags != nil
        guard context.inputTags != inputTags else { return }
        inputTags = context.inputTags
        let choice = TagChoice(
            context.inputTags,
            TagChoice.Wish(
                handling: options.tags, lead: inputs.lead,
                sounds: inputs.soundPlaces.indices.filter { inputs.soundPlaces[$0] != nil },
                copiesSound: options.audio == .copy,
                hasChapters: !options.makesMoreFiles && !context.isLiveChain, container: container,
                track: TrackDescriptions(lead: inputs.format, pictures: inputs.pictures, orientation: .up, audio: [])))
        tags = choice.tags
        for note in choice.notes {
            if isAgain {
                context.log("\(note.text).", level: note.isWarning ? .warning : .info)
            } else {
                context.note(note.text, isWarning: note.isWarning)
            }
        }
    }
}
