// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// What runs the tasks of a batch on other machines: `--on`.
enum BatchEngine: String, CaseIterable, ExpressibleByArgument, Sendable {
    case slurm
    case ray
    case kubernetes
}
