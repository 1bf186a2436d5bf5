#!/usr/bin/env bash
# An agent in curl and jq: read, load, ask for a change, wait for a person, learn the outcome.
# Needs QM_URL (such as http://127.0.0.1:8080) and QM_TOKEN, the agent's token.
set -euo pipefail

api() { curl -sS --fail-with-body "$QM_URL$1" -H "Authorization: Bearer $QM_TOKEN" -H 'Content-Type: application/json' "${@:2}"; }
call() { api "/v1/sessions/$session/calls" -d "{\"tool\":\"$1\",\"arguments\":$2}" | jq .result; }

session=$(api /v1/sessions -d '{"mode":"write"}' | jq -r .id)
echo "tools at first: $(api "/v1/sessions/$session/tools" | jq '.tools | length')"

# Read: the rollout of checkout has failed.
call k8s_rollout_status '{"kind":"Deployment","name":"checkout"}' | jq -c '{failed, message}'

# Load: write tools are not there before somebody asks for them.
call load_toolset '{"toolset":"k8s","include_write_tools":true}' | jq -c .loaded

# Ask: nothing has changed yet, a person is asked (HTTP 202).
run=$(call k8s_rollout '{"action":"undo","kind":"Deployment","name":"checkout"}' | jq -r .run.id)
echo "waits for a person: quartermaster runs approve $run"

# Wait: await_run returns when the run is settled, or after wait_ms with the run as it is.
while outcome=$(call await_run "{\"run_id\":\"$run\",\"wait_ms\":20000}"); do
    case $(jq -r .run.state <<<"$outcome") in
    pending_approval | approved | executing) ;;
    *) break ;;
    esac
done
jq -c '{state: .run.state, by: .run.decided_by}' <<<"$outcome"
[[ $(jq -r .run.state <<<"$outcome") == succeeded ]]

call k8s_wait '{"kind":"Deployment","name":"checkout","until":"rollout","timeout_s":30}' | jq -e .met >/dev/null
echo 'checkout is well again.'
