// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// What the services of this process may see of its run and do with it. [any thread but a stage's]
final class HostControl: RunControl {
    private let running: Chain
    private let document: ChainDocument
    private let language: CommandLanguage
    private let encoder: EncoderLoader

    init(chain: Chain, document: ChainDocument, language: CommandLanguage, encoder: EncoderLoader) {
        running = chain
        self.document = document
        self.language = language
        self.encoder = encoder
    }

    var chainName: String { running.name }
    var folder: String { running.folder }
    var clock: ChainClock { running.clock }
    var chain: JSONNode { document.shown(with: running.setOptions) }
    var plan: JSONNode { PlanText(running.plan).json }
    var figures: JSONNode { running.figuresWithPlugins }
    var metrics: JSONNode { running.metrics }
    var status: ChainStatus { running.status }
    var kinds: JSONNode { .object(running.stageTypes.map { ($0.info.id, StageText($0).json) }) }

    func subscribe(capacity: Int) -> EventSubscription { running.subscribe(capacity: capacity) }
    func json(of event: Event) -> JSONNode { event.json(by: running.clock) }

    func post(_ event: String, level: Event.Level, text: String, details: JSONNode) {
        running.post(
            Event(name: event, level: level, text: text, details: details, time: running.clock.now()))
    }

    func showsOriginals(_ stage: String) -> Bool { running.showsOriginals(stage) }
    func needsOriginals(_ command: JSONNode) -> Bool { OriginalsNeed.isNeeded(by: command, in: running) }

    func perform(_ command: JSONNode, reply: @escaping CommandReply) { language.perform(command, reply: reply) }

    func askPicture(of stage: String, for inbox: PictureInbox) throws {
        try running.askPicture(of: stage, for: inbox)
    }

    func watchUnits(of stage: String, for inbox: UnitInbox) throws -> EncodedFormat {
        try running.watchUnits(of: stage, for: inbox)
    }

    func unwatchUnits(of stage: String, for inbox: UnitInbox) { running.unwatchUnits(of: stage, for: inbox) }

    func requestKeyframe(of stage: String) -> Bool { running.requestKeyframe(of: stage) }

    func encode(_ picture: StagePicture, as form: PictureForm) throws -> [UInt8] {
        try encoder.encoder().encode(
            picture, as: form, takenAt: running.clock.unixTime(at: picture.capturedAt))
    }
}
