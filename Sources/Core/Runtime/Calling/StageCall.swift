// SPDX-License-Identifier: Apache-2.0

/// The kinds of calls that a stage gets.
enum StageCall: UInt8 {
    /// Its one main call, by its kind: `produce`, `process`, `merge`, `consume`.
    case item
    case start, drain, stop, command, set, releaseCaches

    /// The method's name, for people who wrote the stage.
    func name(of kind: StageKind) -> String {
        switch self {
        case .item:
            switch kind {
            case .source: "produce"
            case .filter, .transform: "process"
            case .join: "merge"
            case .sink: "consume"
            }
        case .start: "start"
        case .drain: "drain"
        case .stop: "stop"
        case .command: "command"
        case .set: "optionsChanged"
        case .releaseCaches: "releaseCaches"
        }
    }
}
