// SPDX-License-Identifier: Apache-2.0

/// Which protocol a stage adopts.
public enum StageKind: String, Sendable, CaseIterable {
    /// Adopts ``Source``.
    case source
    /// Adopts ``Filter``.
    case filter
    /// Adopts ``Transform``.
    case transform
    /// Adopts ``Join``.
    case join
    /// Adopts ``Sink``.
    case sink

    /// Whether a stage of this kind can take the place of one of the other kind, while the stages before and behind
    /// it stay as they are.
    func fitsInPlace(of other: StageKind) -> Bool {
        func isMiddle(_ kind: StageKind) -> Bool { kind == .filter || kind == .transform }
        return self == other || (isMiddle(self) && isMiddle(other))
    }

    /// The kind as a number, for an atomic that several threads read.
    var code: UInt8 {
        switch self {
        case .source: 0
        case .filter: 1
        case .transform: 2
        case .join: 3
        case .sink: 4
        }
    }

    init(code: UInt8) {
        self =
            switch code {
            case 0: .source
            case 1: .filter
            case 2: .transform
            case 3: .join
            default: .sink
            }
    }
}
