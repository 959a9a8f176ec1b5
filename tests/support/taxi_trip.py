"""A trip as the workloads of the taxi data get it: each column a list of at most one value."""

TRIP = {
    "fare": [10.0],
    "trip_miles": [3.0],
    "payment_type": ["Cash"],
    "trip_start_timestamp": [1400269500],
    "trip_start_month": [12],
    "trip_start_day": [7],
    "trip_start_hour": [0],
    "trip_seconds": [600],
    "company": ["Blue"],
    "pickup_community_area": [77],
    "dropoff_community_area": [8],
    "pickup_latitude": [41.88],
    "pickup_longitude": [-87.6],
    "dropoff_latitude": [41.98],
    "dropoff_longitude": [-87.6],
    "dropoff_census_tract": [17031081700],
    "pickup_census_tract": [],
    "tips": [2.0],
}
