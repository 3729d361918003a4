"""Every mechanism end to end: two departments' files, real processes, a release that a consumer verifies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tallyveil.guarantee import KIND_AT_DEPARTMENT, KIND_LDP
from tallyveil.release import open_release
from tallyveil.signing import VerifyingKey
from tallyveil.survey import BINNED, MECHANISMS
from tallyveil_demo.deployment import Deployment
from tallyveil_demo.offices import load_offices
from tallyveil_demo.outcome import national_truth
from tallyveil_demo.processes import serving

OTHERS = tuple(name for name in MECHANISMS if name != "brr")  # which the demo runs


@pytest.mark.parametrize("mechanism", OTHERS)
def test_a_round_ends_in_a_verified_release_near_the_truth(tmp_path: Path, mechanism: str) -> None:
    deployment = Deployment(tmp_path, load_offices()[:2], mechanism, 16 if mechanism in BINNED else 1)
    deployment.set_up()
    with serving(deployment.server_command, tmp_path, tmp_path / "port") as port:
        deployment.equip_offices(port)
        deployment.approve(lambda: None)
        deployment.collect(lambda: None)
        deployment.publish(port)
    key = VerifyingKey.from_pem(deployment.release_key.read_bytes())
    release = open_release(deployment.release_file.read_bytes(), key).release
    truth = national_truth(deployment.offices)
    assert release.records == int(truth.sum())
    kind = KIND_AT_DEPARTMENT if mechanism == "histogram-laplace" else KIND_LDP
    assert [guarantee.kind for guarantee in release.guarantees] == [kind]
    rows = release.tables[0].rows
    errors = np.array([float(row.estimate) for row in rows]) - truth
    spreads = np.array([float(row.standard_error) for row in rows])
    # Seven standard errors: 3e-12 a cell under the normal law, far below ALPHA over all cells under this one.
    assert (np.abs(errors) < 7 * spreads).all()
    assert np.abs(errors).mean() > 0
