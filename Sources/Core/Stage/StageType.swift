// SPDX-License-Identifier: Apache-2.0

/// What a stage type is without its Swift type: its description, its options, how to make a stage.
public final class StageType: Sendable {
    /// What the stage says of itself.
    public let info: StageInfo
    /// The protocol that it adopts.
    public let kind: StageKind
    /// Its options, in the order of declaration.
    public let options: [OptionField]
    /// Of a stage in another language: the program that it is.
    public let program: StageProgram?
    let make:
        @Sendable (_ members: [JSONNode.Member], _ place: OptionPlace, _ context: StageContext) throws -> StageInstance
    /// [control thread] Makes what stands in for the stage, which runs in a process of its own.
    ///
    /// - Throws: ``FrameHostErrors`` of the options.
    func makeIsolated(
        _ request: IsolationRequest, _ members: [JSONNode.Member], _ place: OptionPlace, _ context: StageContext
    ) throws -> StageInstance {
        try check(members, place)
        let filter = IsolatedFilter(self, request, members, context)
        return StageInstance(standIn: filter, for: self, context) { [checkChange] members, place in
            try checkChange(members, place)
            try filter.set(members, place)
        }
    }

    let check: @Sendable (_ members: [JSONNode.Member], _ place: OptionPlace) throws -> Void
    /// [stage thread] Checks live options of a stage whose process does not know which there are.
    private let checkChange: @Sendable (_ members: [JSONNode.Member], _ place: OptionPlace) throws -> Void
    let findTopics: @Sendable () throws -> [StageTopic]
    let findTopic: @Sendable (_ name: String) throws -> StageTopic?
    /// [control thread] Finds the devices that the stage could use; nil for a stage type that uses none. Throws what
    /// the stage throws.
    public let devices: (@Sendable () throws -> [StageDevice])?

    /// The stage type that a Swift type stands for.
    public init<S: Stage>(_ type: S.Type) {
        info = S.info
        options = S.Options.fields
        let kind: StageKind =
            if S.self is any Source.Type { .source } else if S.self is any Filter.Type {
                .filter
            } else if S.self is any Join.Type { .join } else if S.self is any Transform.Type { .transform } else {
                .sink
            }
        self.kind = kind
        program = nil
        checkChange = { _, _ in }
        check = { members, place in _ = try OptionDecoder.decode(S.Options.self, from: members, place: place) }
        make = { members, place, context in
            let options = try OptionDecoder.decode(S.Options.self, from: members, place: place)
            return StageInstance(try S(options: options, context: context), kind, context)
        }
        findTopics = { try S.topics() }
        findTopic = { try S.topic($0) }
        if let type = S.self as? any DeviceStage.Type {
            devices = { try type.devices() }
        } else {
            devices = nil
        }
    }

    /// A filter that a program is.
    init(
        _ info: StageInfo, options: [OptionField], _ program: StageProgram,
        check: @escaping @Sendable (_ members: [JSONNode.Member], _ place: OptionPlace) throws -> Void,
        checkChange: @escaping @Sendable (_ members: [JSONNode.Member], _ place: OptionPlace) throws -> Void
    ) {
        (self.info, kind, self.options, self.program) = (info, .filter, options, program)
        (self.check, self.checkChange) = (check, checkChange)
        make = { _, _, _ in
            throw FrameHostError(.broken, what: "a program runs in a process of its own, or not at all")
        }
        findTopics = { [] }
        findTopic = { _ in nil }
        devices = nil
    }
}
