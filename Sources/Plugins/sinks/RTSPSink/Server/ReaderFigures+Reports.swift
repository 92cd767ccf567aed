// SPDX-License-Identifier: Apache-2.0

extension ReaderFigures {
    /// Takes over the losses of its last receiver report of a medium.
    mutating func note(_ report: ReceptionReport, of medium: Medium) {
        switch medium {
        case .pictures: (packetsLost, fractionLost) = (report.packetsLost, report.fractionLost)
        case .sound:
            sound?.packetsLost = report.packetsLost
            sound?.fractionLost = report.fractionLost
        }
    }

    mutating func note(_ reports: PerMedium<ReceptionReport?>) {
        for medium in Medium.allCases {
            if let report = reports[medium] { note(report, of: medium) }
        }
    }

    /// Takes over the losses that another has noted of the same reader.
    mutating func takeLosses(of other: ReaderFigures) {
        (packetsLost, fractionLost) = (other.packetsLost, other.fractionLost)
        sound?.packetsLost = other.sound?.packetsLost ?? 0
        sound?.fractionLost = other.sound?.fractionLost ?? 0
    }
}
