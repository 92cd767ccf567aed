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

    /// A stage of this kind can take the place of one of the other, with what is before and behind it as it is.
    func fitsInPlace(of other: StageKind) -> Bool {
        func isMiddle(_ kind: StageKind) -> Bool { kind == .filter || kind == .transform }
        return self == other || (isMiddle(self) && isMiddle(other))
    }

    /// For a place that several threads look at.
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
