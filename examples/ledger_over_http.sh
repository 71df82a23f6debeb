#!/usr/bin/env bash
# A dataset, a spend, a retry and a refusal over HTTP. PAYGO_URL and PAYGO_TOKEN say where and who.
set -euo pipefail
: "${PAYGO_URL:=http://127.0.0.1:7460}" "${PAYGO_TOKEN:?the token that the first start of paygo serve printed}"

ask() { # ask METHOD PATH [JSON]
  curl --silent --show-error --fail-with-body --request "$1" "$PAYGO_URL/v1/$2" \
    --header "Authorization: Bearer $PAYGO_TOKEN" --header "Content-Type: application/json" ${3:+--data "$3"}
  echo
}

ask POST datasets '{"name": "web", "privacy_unit": "visitor", "filter": {"epsilon": 1, "delta": 1e-6}}'

# An id of your own making: whatever gets lost on the way, the same again is charged once.
weekly='{"id": "week-47", "mechanism": {"gaussian": {"noise_multiplier": 10}}, "note": "weekly counts"}'
ask POST datasets/web/spend "$weekly"
ask POST datasets/web/spend "$weekly"

# A refusal is an answer: what is left, and how many of the same would fit.
ask POST datasets/web/spend '{"id": "too-much", "mechanism": {"repeat": {"count": 100, "of": {"gaussian": {"noise_multiplier": 10}}}}}'

# What would be answered now? Nothing is charged.
ask POST datasets/web/what-if '{"mechanism": {"laplace": {"scale": 20}}}'
ask GET datasets/web
